//! Filesystems of all kinds.

use crate::image::Wish;

/// Their sizes and options.
pub fn wishes() -> Vec<Wish> {
    vec![
        Wish::new("default", 300, ""),
        Wish::new("1k", 200, "-b size=1k"),
        Wish::new("64k", 600, "-b size=64k"),
        Wish::new("8k-2k-inodes", 400, "-b size=8k -i size=2048"),
        Wish::new("v4", 200, "-m crc=0"),
        Wish::new("v4-512", 200, "-m crc=0 -b size=512 -i size=256"),
        Wish::new("v4-no-ftype", 200, "-m crc=0 -n ftype=0"),
        Wish::new("v4-ftype", 200, "-m crc=0 -n ftype=1"),
        Wish::new("v4-attr1", 200, "-m crc=0 -i attr=1 -l lazy-count=0"),
        Wish::new("v4-noalign", 200, "-m crc=0 -i align=0"),
        Wish::new("no-rmap", 200, "-m rmapbt=0,reflink=0"),
        Wish::new("no-parent", 200, "-n parent=0"),
        Wish::new("no-sparse", 200, "-i sparse=0"),
        Wish::new("no-finobt", 200, "-m finobt=0,inobtcount=0,rmapbt=0,reflink=0"),
        Wish::new("no-bigtime", 200, "-m bigtime=0 -i nrext64=0"),
        Wish::new("ci", 200, "-n version=ci"),
        Wish::new("dir-64k", 300, "-n size=64k"),
        Wish::new("1k-dir-4k", 300, "-b size=1k -n size=4k"),
        Wish::new("stripe", 400, "-d su=64k,sw=4"),
        Wish::new("metadir", 300, "-m metadir=1"),
        Wish::new("metadir-quota", 300, "-m metadir=1,uquota,gquota,pquota"),
        Wish::new("many-groups", 400, "-d agcount=20"),
        Wish::new("inherit", 300, "-d projinherit=42,extszinherit=4"),
        Wish::new("sector-4k", 300, "-s size=4k"),
    ]
}
