//! What can be asked of xfskit-db.

use std::sync::Arc;

use xfskit::buffer::{BlockCache, FoundSuperblock};
use xfskit::buffer::{Primary, SearchEffort, find_superblock, read_superblock};
use xfskit::db::{Session, interpret, line};
use xfskit::geometry::{AgNumber, Geometry};
use xfskit::image::{Image, ImageDevices};

use super::Random;
use super::bases::Base;
use super::mutation::Mutant;
use super::structures::Unit;
use super::watch::{Listener, Sink, usual};

/// Commands over whole filesystems.
const SCANS: &str = "\
blockget -n
blockget -v
blockget -s
blockget; blockuse; blockuse -n -c 4; blockfree
blockget -n; ncheck; ncheck -s; blockfree
blockget -b 17 -i INO; ncheck -i INO
freesp
freesp -s -d
freesp -b
freesp -c -s
freesp -a 1 -e 4
frag
frag -v
frag -d -f
frag -a -r -l -q -R
fsmap
fsmap -d 100 90000
fsmap -r
dump_iunlinked
dump_iunlinked -v
dump_iunlinked -a 1 -b 3 -q
agresv
rgresv
info
logres
version
label
uuid
timelimit
timelimit --pretty
makecfg
untorn_write_max -b 16
agf 0; addr bnoroot; btdump
agf 1; addr cntroot; btdump -i
agi 0; addr root; btdump -i
agf 0; addr rmaproot; btdump
agf 0; addr refcntroot; btdump -i
agi 1; addr free_root; btdump
ls /
ls /dirs/n300 /dirs/n1200 /links /wide /p0
ls -i -m /rtgroups
path /files/deep; bmap; btdump -i
path /files/btree; bmap; print
path /attrs/node; attr_list -v; btdump -a
path /attrs/remote; attr_get value-20000
path /attrs/deep; ablock 0; btdump
path /attributes/many; attr_list -r -v; parent
path /links/l1000; bmap; print
path -m /rtgroups/0.rmap; btdump -i; print
path -m /rtgroups/0.refcount; btdump
path -m /rtgroups/0.bitmap; dblock 0; print
";

/// Commands that look at one place. INO is an inode, GROUP a group, BLOCK one of its blocks, NUMBER anything.
const PLACES: &str = "\
sb GROUP; print
sb 0; addr rootino; print; ls
sb 0; addr rbmino; print; dblock 0; print
sb 0; addr rsumino; print
sb 0; addr uquotino; print; dblock 0; print
sb 0; addr metadirino; print; ls
sb 0; addr logstart; print
agf GROUP; print
agf GROUP; addr bnoroot; print
agf GROUP; addr cntroot; addr ptrs[1]; print; addr rightsib; print
agf GROUP; addr rmaproot; print; addr ptrs[1]; print
agf GROUP; addr refcntroot; print; addr leftsib; print
agi GROUP; print
agi GROUP; addr root; print; addr recs[1].startino; print
agi GROUP; addr free_root; print
agi GROUP; addr unlinked[3]; print
agfl GROUP; print; addr bno[1]; print
inode INO; print
inode INO; print; bmap; bmap -a
inode INO; btdump; btdump -a -i
inode INO; ls; ls -i
inode INO; parent
inode INO; attr_list -v; attr_list -r; attr_list -s; attr_list -p; attr_list -Z
inode INO; addr u3.bmx[0].startblock; print
inode INO; addr u3.bmbt.ptrs[1]; print; btdump
inode INO; addr a.bmx[0].startblock; print
inode INO; addr next_unlinked; print
inode INO; ablock 0; print; btdump
inode INO; dblock 0; print
inode INO; dblock 8388608; print; btdump
inode INO; dblock 16777216; print
inode INO; addr u3.sfdir3.list[1].inumber; print
inode INO; type text; print
inode INO; path ..; print; ls
inode INO; print core; print u3; print a
inode INO; addr a.bmbt.ptrs[1]; print; addr rightsib; print
inode INO; dblock NUMBER; print
inode INO; bmap NUMBER 7; bmap -d 0 1000
dquot -u 0; print; dquot -g 1; print; dquot -p 40; print; dquot -u NUMBER; print
fsblock NUMBER; type data; print
logblock NUMBER; print
rtblock NUMBER; print
rtextent NUMBER; print
type TYPE
convert fsblock NUMBER agno; convert ino INO agbno; convert daddr NUMBER inode
rtconvert rtblock NUMBER rtx; rtconvert daddr NUMBER rgno; rtconvert rtx NUMBER rbmblock; rtconvert rsumlog 2 rsuminfo 1 rsumblock 0 rtx
daddr NUMBER; type TYPE; print; stack; ring; push; pop; back; forward
crc
inode INO; crc -v
agf GROUP; crc -v
hash -d -p INO name
bmap -a NUMBER
source /dev/null
ablock NUMBER; print
inode INO; hashcoll -n 2 -i name
";

const TYPES: &str = "agf agfl agi attr bmapbta bmapbtd bnobt cntbt data dir3 dqblk finobt inobt inode log refcntbt rmapbt rtbitmap \
    rgbitmap rgsummary rtrefcntbt rtrmapbt rtsb rtsummary sb symlink text attr3 dir2 inodata";

fn line_of(table: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = table.lines().collect();
    (*random.pick(&lines)).to_owned()
}

/// Asks; gives what was asked.
pub fn ask(base: &Base, mutant: &Mutant, random: &mut Random) -> String {
    let mut lines = Vec::new();
    if random.one_in(2) {
        lines.push(line_of(SCANS, random));
    }
    for site in &mutant.hit {
        lines.push(looking_at(base, site, random));
    }
    while lines.len() < 4 {
        lines.push(line_of(PLACES, random));
    }
    let lines: Vec<String> = lines.iter().map(|line| filled(base, line, random)).collect();
    run(mutant.devices.clone(), &lines, random.one_in(3), random.one_in(8));
    format!("db {}", lines.join("; "))
}

/// Commands that go to a structure and show it as what it was.
fn looking_at(base: &Base, site: &super::structures::Site, random: &mut Random) -> String {
    if site.form.unit == Unit::Inode {
        let at = base.inode_at(site.offset).unwrap_or_default();
        let of_inodes: Vec<&str> = PLACES.lines().filter(|line| line.starts_with("inode INO")).collect();
        let line = *random.pick(&of_inodes);
        return line.replace("INO", &at.to_string());
    }
    if site.realtime {
        return "rtblock NUMBER; print".to_owned();
    }
    let name = if site.form.name == "dir" || site.form.name == "attr" {
        format!(
            "{}{}",
            site.form.name,
            if base.geometry.features.has_crc() {
                "3"
            } else if site.form.name == "dir" {
                "2"
            } else {
                ""
            }
        )
    } else {
        site.form.name.to_owned()
    };
    let then = random.pick(&[
        "",
        "; btdump",
        "; addr rightsib; print",
        "; crc -v",
        "; addr lhdr.info.hdr.forw; print",
        "; addr ptrs[1]; print",
    ]);
    format!("daddr {}; type {name}; print{then}", site.offset / 512)
}

fn filled(base: &Base, line: &str, random: &mut Random) -> String {
    let ino =
        if base.inodes.is_empty() || random.one_in(20) { random.under(100_000) } else { *random.pick(&base.inodes) };
    let geometry = &base.geometry;
    let number = match random.below(4) {
        0 => random.under(geometry.dblocks),
        1 => random.next() >> random.below(64),
        2 => random.under(1000),
        _ => random.under(geometry.log_basic_blocks()),
    };
    let types: Vec<&str> = TYPES.split(' ').collect();
    line.replace("INO", &ino.to_string())
        .replace("GROUP", &random.under(u64::from(geometry.agcount) + 1).to_string())
        .replace("NUMBER", &number.to_string())
        .replace("TYPE", random.pick::<&str>(&types))
}

/// Runs lines of commands on an image.
fn run(devices: ImageDevices, lines: &[String], json: bool, force: bool) {
    let image = if force { forced(devices) } else { Image::open(devices, SearchEffort::Guesses).ok() };
    let Some(image) = image else { return };
    let mut session = Session::new(image, Arc::new(Listener::default()));
    for line in lines {
        for command in line.split("; ") {
            match interpret(&mut session, &line::words(command)) {
                Ok(Some(answer)) => {
                    let _ = answer.write_text(&mut Sink::new());
                    if json {
                        let _ = serde_json::to_writer(&mut Sink::new(), &answer.json());
                    }
                }
                Ok(None) => {}
                Err(error) => usual(&error),
            }
        }
    }
}

/// What -F does.
fn forced(devices: ImageDevices) -> Option<Image> {
    let read = read_superblock(&*devices.data, 0, AgNumber(0)).ok()?;
    let geometry = Geometry::assume(&read.sb);
    let primary = Primary::Damaged(read.verdict);
    let superblock = FoundSuperblock { sb: read.sb, geometry, agno: AgNumber(0), offset: 0, primary, agreeing: 1 };
    find_superblock(&*devices.data, SearchEffort::Guesses).ok()?;
    Some(Image::of_superblock(devices, superblock, BlockCache::DEFAULT_CAPACITY))
}
