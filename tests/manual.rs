//! Man pages, completions and `--help` agree, and the Makefile knows the tools that there are.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::Shell;
use xfskit::cli::manual::{SHELLS, TOOLS, Tool, WRITTEN_SECTIONS};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn written(tool: &Tool) -> String {
    let path = root().join(format!("man/{}.roff", tool.name));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn built(tool: &Tool) -> Command {
    let mut command = (tool.command)();
    command.build();
    command
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set())
}

/// `-x` and `--long` of an argument, with its visible aliases.
fn spellings(argument: &Arg) -> Vec<String> {
    let shorts = argument.get_short().into_iter().chain(argument.get_visible_short_aliases().unwrap_or_default());
    let longs = argument.get_long().into_iter().chain(argument.get_visible_aliases().unwrap_or_default());
    shorts.map(|short| format!("-{short}")).chain(longs.map(|long| format!("--{long}"))).collect()
}

/// Those of a command and of its subcommands.
fn all_spellings(command: &Command) -> Vec<String> {
    let of_subcommands = command.get_subcommands().flat_map(all_spellings);
    command.get_arguments().flat_map(spellings).chain(of_subcommands).collect()
}

/// A roff text as one reads it: without escapes, fonts and line breaks.
fn plain(roff: &str) -> String {
    let text = roff.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "");
    let text = text.replace("\\(aq", "'").replace("\\*(Aq", "'").replace("\\e", "\\");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn page(tool: &Tool) -> String {
    String::from_utf8(tool.page(&written(tool)).expect("invariant: memory can be written")).expect("pages are UTF-8")
}

/// The lines of the page between a heading and the next.
fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let heading = [format!(".SH {name}\n"), format!(".SH \"{name}\"\n")];
    let start = heading.iter().find_map(|heading| page.find(heading.as_str()).map(|at| at + heading.len()))?;
    let len = page[start..].find("\n.SH ").unwrap_or(page.len() - start);
    Some(&page[start..start + len])
}

#[test]
fn the_page_has_every_option_with_its_help() {
    for tool in TOOLS {
        let (command, page) = (built(tool), page(tool));
        let options = plain(section(&page, "OPTIONS").expect("the page has options"));
        let synopsis = plain(section(&page, "SYNOPSIS").expect("the page has a synopsis"));
        let mut count = 0;
        for argument in shown(&command) {
            for spelling in spellings(argument) {
                assert!(options.contains(&spelling), "{}: {spelling} is not on the page", tool.name);
            }
            let help =
                argument.get_help().unwrap_or_else(|| panic!("{}: {} has no help", tool.name, argument.get_id()));
            // The page has the long help where there is one; that begins with the short one. clap's own words for
            // its help option depend on which is shown.
            let same = argument.get_id() == "help" || options.contains(&plain(&help.to_string()));
            assert!(same, "{}: {help}", tool.name);
            let first = spellings(argument).into_iter().next();
            let name = first.unwrap_or_else(|| argument.get_value_names().unwrap_or_default()[0].to_string());
            assert!(synopsis.contains(&name), "{}: {name} is not in the synopsis", tool.name);
            count += 1;
        }
        assert!(count > 5, "{}: hardly any options were found", tool.name);
    }
}

#[test]
fn the_page_has_every_command_with_its_options() {
    for tool in TOOLS {
        let (command, page) = (built(tool), page(tool));
        let text = section(&page, "COMMANDS").map(plain).unwrap_or_default();
        for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
            let start = text.find(&format!("\"{}", command.get_name()));
            let start = start.unwrap_or_else(|| panic!("{}: {} is not on the page", tool.name, command.get_name()));
            let end = text[start..].find(".SS").map_or(text.len(), |len| start + len);
            for argument in shown(command).filter(|argument| !argument.is_global_set() && argument.get_id() != "help") {
                for spelling in spellings(argument) {
                    let found = text[start..end].contains(&spelling);
                    assert!(found, "{} {}: {spelling} is not on the page", tool.name, command.get_name());
                }
                let help = argument.get_help().map(|help| plain(&help.to_string())).unwrap_or_default();
                assert!(!help.is_empty() && text[start..end].contains(&help), "{}: {help}", tool.name);
            }
        }
    }
}

#[test]
fn the_help_has_every_option() {
    for tool in TOOLS {
        let help = built(tool).term_width(0).render_long_help().to_string();
        for argument in shown(&built(tool)) {
            for spelling in spellings(argument) {
                assert!(help.contains(&spelling), "{}: {spelling} is not in the help", tool.name);
            }
        }
    }
}

#[test]
fn the_completions_know_suboptions() {
    let mkfs = TOOLS.iter().find(|tool| tool.name == "xfskit-mkfs").expect("it is there");
    for shell in SHELLS {
        let text = String::from_utf8(mkfs.completions(*shell)).expect("completions are UTF-8");
        for suboption in ["agcount=", "rmapbt", "logdev="] {
            assert!(text.contains(suboption), "{shell}: {suboption}");
        }
    }
}

#[test]
fn the_completions_have_every_option() {
    for tool in TOOLS {
        for shell in SHELLS {
            let text = String::from_utf8(tool.completions(*shell)).expect("completions are UTF-8");
            for argument in shown(&built(tool)) {
                for spelling in
                    [argument.get_short().map(|c| format!("-{c}")), argument.get_long().map(|l| format!("--{l}"))]
                {
                    let Some(spelling) = spelling else { continue };
                    let found = match shell {
                        Shell::Fish => {
                            let name = spelling.trim_start_matches('-');
                            text.contains(&format!("-s {name} ")) || text.contains(&format!("-l {name}"))
                        }
                        _ => text.contains(&spelling),
                    };
                    assert!(found, "{}: {spelling} is not in the completions for {shell}", tool.name);
                }
            }
        }
    }
}

#[test]
fn the_written_sections_are_there_and_in_order() {
    for tool in TOOLS {
        let page = page(tool);
        let mut last = 0;
        for name in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(section(&page, name).is_some_and(|text| !text.trim().is_empty()), "{}: no {name}", tool.name);
        }
        let mut places: Vec<usize> = Vec::new();
        for name in WRITTEN_SECTIONS {
            let text = section(&page, name).unwrap_or_else(|| panic!("{}: no section {name}", tool.name));
            assert!(plain(text).len() > 20, "{}: {name} says nothing", tool.name);
            places.push(text.as_ptr().addr());
            last += 1;
        }
        assert_eq!(last, WRITTEN_SECTIONS.len());
        assert!(
            places.iter().max() == places.last(),
            "{}: {} is not the last section",
            tool.name,
            WRITTEN_SECTIONS[last - 1]
        );
    }
}

/// Options of other programs that hand-written texts name.
const OF_OTHERS: &[&str] = &["--xattrs", "--xattrs-include", "--acls"];

/// What a hand-written text calls a long option is one.
#[test]
fn the_written_sections_name_no_option_that_is_not_there() {
    for tool in TOOLS {
        let known: BTreeSet<String> = TOOLS.iter().flat_map(|tool| all_spellings(&built(tool))).collect();
        let text = plain(&written(tool));
        let mut found = 0;
        for (at, _) in text.match_indices("--") {
            let name: String = text[at + 2..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            if !name.is_empty() && !text[..at].ends_with('-') {
                let name = format!("--{name}");
                assert!(known.contains(&name) || OF_OTHERS.contains(&&*name), "{}: {name}", tool.name);
                found += 1;
            }
        }
        assert!(found > 0, "{}: no option was found in the text", tool.name);
    }
}

/// The value of a variable of the Makefile.
fn variable(makefile: &str, name: &str) -> Vec<String> {
    let line = makefile.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
    line.split_once('=').map_or(vec![], |(_, value)| value.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn the_makefile_knows_the_tools() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("invariant: the Makefile is there");
    let short = |tool: &Tool| tool.name.strip_prefix("xfskit-").expect("tools are named xfskit-...").to_owned();
    let names: Vec<String> = TOOLS.iter().map(short).collect();
    assert_eq!(variable(&makefile, "TOOLS"), names);
    let pair = |tool: &Tool| Some(format!("{}:{}", short(tool), tool.xfsprogs_name?));
    let pairs: Vec<String> = TOOLS.iter().filter_map(pair).collect();
    assert_eq!(variable(&makefile, "COMPAT"), pairs);
    let binaries = std::fs::read_dir(root().join("src/bin")).expect("invariant: the binaries are there");
    let binaries: BTreeSet<String> =
        binaries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    assert_eq!(binaries, names.into_iter().collect());
}
