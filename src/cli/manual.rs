//! Man pages and shell completions, made from the same definitions as `--help`.

use std::io;

use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

/// A tool as it is installed.
pub struct Tool {
    /// Name of the binary.
    pub name: &'static str,
    /// The name of its counterpart in xfsprogs, if it has one.
    pub xfsprogs_name: Option<&'static str>,
    /// Its command line.
    pub command: fn() -> Command,
}

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool { name: "xfskit-mkfs", xfsprogs_name: Some("mkfs.xfs"), command: super::mkfs::command },
    Tool { name: "xfskit-info", xfsprogs_name: Some("xfs_info"), command: super::info::command },
    Tool { name: "xfskit-db", xfsprogs_name: Some("xfs_db"), command: super::db::command },
    Tool { name: "xfskit-files", xfsprogs_name: None, command: super::files::command },
    Tool { name: "xfskit-logprint", xfsprogs_name: Some("xfs_logprint"), command: super::logprint::command },
    Tool { name: "xfskit-metadump", xfsprogs_name: Some("xfs_metadump"), command: super::metadump::command },
    Tool { name: "xfskit-mdrestore", xfsprogs_name: Some("xfs_mdrestore"), command: super::mdrestore::command },
];

/// Section of the manual: system administration.
pub const SECTION: &str = "8";

/// Sections that each tool's hand-written part must have, in this order.
pub const WRITTEN_SECTIONS: &[&str] = &["EXAMPLES", "EXIT STATUS", "SEE ALSO"];

/// Shells that completions are made for.
pub const SHELLS: &[Shell] = &[Shell::Bash, Shell::Zsh, Shell::Fish];

impl Tool {
    /// The tool's man page. `written` is roff: what it begins with, up to the first section, goes on from the
    /// description; its sections follow the options.
    ///
    /// # Errors
    /// None but those of writing to memory.
    pub fn page(&self, written: &str) -> io::Result<Vec<u8>> {
        let man = Man::new((self.command)().mut_args(with_aliases))
            .title(self.name.to_uppercase())
            .section(SECTION)
            .source(concat!("xfskit ", env!("CARGO_PKG_VERSION")))
            .manual("System Administration");
        let (description, sections) = written.split_at(written.find(".SH").unwrap_or(written.len()));
        let mut page = Vec::new();
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        page.extend(self.synopsis().as_bytes());
        man.render_description_section(&mut page)?;
        page.extend(description.as_bytes());
        man.render_options_section(&mut page)?;
        page.extend(self.commands().as_bytes());
        page.extend(sections.as_bytes());
        Ok(page)
    }

    /// The section about the tool's commands; empty when it has none.
    fn commands(&self) -> String {
        let command = (self.command)().mut_subcommands(|command| command.disable_help_flag(true));
        let mut text = String::new();
        for command in command.get_subcommands() {
            let mut usage = format!("\\fB{}\\fR", escape(command.get_name()));
            for argument in command.get_opts().chain(command.get_arguments().filter(|argument| is_flag(argument))) {
                usage += &format!(" [{}]", self::usage(argument));
            }
            for argument in command.get_positionals() {
                usage += &format!(" {}", values(argument));
            }
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!(".SS \"{usage}\"\n{}\n", escape(&about));
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                text += &format!(".TP\n{}\n{}\n", spellings(argument), escape(&help));
            }
        }
        if text.is_empty() { text } else { format!(".SH COMMANDS\n{text}") }
    }

    /// One line with all options and the names of their values.
    fn synopsis(&self) -> String {
        let mut command = (self.command)();
        command.build();
        let mut text = format!(".SH SYNOPSIS\n\\fB{}\\fR", escape(self.name));
        for argument in command.get_opts().chain(command.get_arguments().filter(|argument| is_flag(argument))) {
            if !argument.is_hide_set() {
                text += &format!(" [{}]", usage(argument));
            }
        }
        for argument in command.get_positionals() {
            text += &format!(" {}", values(argument));
        }
        text + "\n"
    }

    /// File name of the page.
    pub fn page_name(&self) -> String {
        format!("{}.{SECTION}", self.name)
    }

    /// The completions for a shell.
    pub fn completions(&self, shell: Shell) -> Vec<u8> {
        let mut text = Vec::new();
        generate(shell, &mut (self.command)(), self.name, &mut text);
        text
    }

    /// File name of the completions, as the shell looks for them.
    pub fn completions_name(&self, shell: Shell) -> String {
        match shell {
            Shell::Zsh => format!("_{}", self.name),
            Shell::Fish => format!("{}.fish", self.name),
            _ => self.name.to_owned(),
        }
    }
}

/// Puts an option's other names into its help, where `--help` has them too and the man page would not.
fn with_aliases(argument: Arg) -> Arg {
    let aliases: Vec<String> =
        argument.get_visible_aliases().unwrap_or_default().iter().map(|alias| format!("--{alias}")).collect();
    match argument.get_help() {
        Some(help) if !aliases.is_empty() => {
            let help = format!("{help} [aliases: {}]", aliases.join(", "));
            argument.help(help)
        }
        _ => argument,
    }
}

fn is_flag(argument: &Arg) -> bool {
    !argument.is_positional() && !argument.get_action().takes_values()
}

/// An option as one types it: its short form where it has one.
fn usage(argument: &Arg) -> String {
    let name = match (argument.get_short(), argument.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => argument.get_id().to_string(),
    };
    let name = format!("\\fB{}\\fR", escape(&name));
    if argument.get_action().takes_values() { format!("{name} {}", values(argument)) } else { name }
}

/// Every way in which one types an argument.
fn spellings(argument: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    let names: Vec<String> = names.iter().map(|name| format!("\\fB{}\\fR", escape(name))).collect();
    match (names.is_empty(), argument.get_action().takes_values()) {
        (true, _) => values(argument),
        (false, true) => format!("{} {}", names.join(", "), values(argument)),
        (false, false) => names.join(", "),
    }
}

/// The names of an argument's values.
fn values(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default().iter().map(|name| escape(name));
    format!("\\fI{}\\fR", names.collect::<Vec<_>>().join(" "))
}

/// A hyphen in roff is for dividing words; what is to be typed needs a minus.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
