//! The one place where blocks are verified.

use super::checks::Checks;
use super::identity::{Identity, IdentityV5};
use super::kind::{BlockKind, Owner, Request};
use super::{
    agf, agfl, agi, attributes, btree_block, dinode, directory, dquot, inode_cluster, realtime, remote, superblock,
};
use crate::error::{Rule, Verdict};
use crate::geometry::{Geometry, Ino, Lsn};
use crate::ondisk::crc;

/// Verifies blocks of one filesystem.
#[derive(Clone, Debug)]
pub struct Verifier {
    geometry: Geometry,
    log_head: Option<Lsn>,
}

impl Verifier {
    /// A verifier for a filesystem whose log has not been looked at: LSNs are not checked.
    pub fn new(geometry: Geometry) -> Self {
        Verifier { geometry, log_head: None }
    }

    /// The same for a filesystem whose log has come to `head`: no block can have been written later.
    #[must_use]
    pub fn with_log_head(mut self, head: Lsn) -> Self {
        self.log_head = Some(head);
        self
    }

    /// The geometry that blocks are verified against.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Every check that `bytes` fail as the block that `request` asks for.
    pub fn verify(&self, request: &Request, bytes: &[u8]) -> Verdict {
        let identity = Identity::of(request.kind, &self.geometry);
        let mut checks =
            Checks::new(&self.geometry, request, bytes, structure_name(request.kind), request.place(&self.geometry));
        if let Some(identity) = &identity {
            self.identity(identity, &mut checks);
        }
        contents(&mut checks);
        let mut verdict = checks.into_verdict();
        match request.kind {
            BlockKind::InodeCluster => verdict.append(inode_cluster::verify(&self.geometry, request, bytes)),
            BlockKind::Dquots => verdict.append(dquot::verify(&self.geometry, request, bytes)),
            BlockKind::AttrRemote => verdict.append(remote::verify_attribute(&self.geometry, request, bytes)),
            _ => {}
        }
        verdict
    }

    /// Every check that `bytes`, as long as an inode, fail as inode `ino`.
    pub fn verify_inode(&self, ino: Ino, bytes: &[u8]) -> Verdict {
        dinode::verify(&self.geometry, ino, bytes)
    }

    /// Stores `lsn`, if there is one and the block has a place for it, and the CRC; nothing in version 4.
    pub fn stamp(&self, kind: BlockKind, bytes: &mut [u8], lsn: Option<Lsn>) {
        match kind {
            BlockKind::InodeCluster => return inode_cluster::stamp(&self.geometry, bytes),
            BlockKind::Dquots => return dquot::stamp(&self.geometry, bytes, lsn),
            BlockKind::AttrRemote => return remote::stamp_attribute(&self.geometry, bytes),
            _ => {}
        }
        if let Some(identity) = Identity::of(kind, &self.geometry) {
            identity.stamp(bytes, lsn);
        }
    }

    /// The checks that all structures share, in their order.
    fn identity(&self, identity: &Identity, checks: &mut Checks<'_>) {
        if checks.bytes.len() < identity.len {
            checks.truncated();
            return;
        }
        let magic = identity.magic.read(checks.bytes);
        let known = identity.magic.allowed.contains(&magic);
        checks.require(known, identity.magic.name, Rule::Magic, || format!("{magic:#x}"));
        if let Some(v5) = &identity.v5 {
            if !crc::matches(checks.bytes, v5.crc) {
                let (stored, right) = (crc::stored(checks.bytes, v5.crc), crc::checksum(checks.bytes, v5.crc));
                checks.fail("crc", Rule::Crc, format!("{stored:#010x}, contents have {right:#010x}"));
            }
            if let Some(uuid) = v5.uuid {
                let ours = checks.bytes.get(uuid..uuid + 16) == Some(&self.geometry.meta_uuid[..]);
                checks.require(ours, "uuid", Rule::Uuid, String::new);
            }
        }
        self.owner(identity, checks);
        if let Some(v5) = &identity.v5 {
            self.address_and_lsn(v5, checks);
        }
    }

    fn address_and_lsn(&self, v5: &IdentityV5, checks: &mut Checks<'_>) {
        if let Some(blkno) = v5.blkno {
            checks.equal("blkno", Rule::Address, blkno.read(checks.bytes), checks.request.daddr().0);
        }
        if let (Some(lsn), Some(head)) = (v5.lsn, self.log_head) {
            let lsn = Lsn(lsn.read(checks.bytes));
            checks.require(lsn <= head, "lsn", Rule::Lsn, || {
                format!("{}:{}, the log is at {}:{}", lsn.cycle(), lsn.block(), head.cycle(), head.block())
            });
        }
    }

    fn owner(&self, identity: &Identity, checks: &mut Checks<'_>) {
        let Some(field) = identity.owner else { return };
        let found = field.read(checks.bytes);
        let expected = match checks.request.owner {
            Owner::Inode(ino) => Some(ino.0),
            _ if checks.request.kind.is_of_group() => {
                checks.request.group(&self.geometry).map(|agno| u64::from(agno.0))
            }
            _ => None,
        };
        match expected {
            Some(expected) => checks.equal(field.name, Rule::Owner, found, expected),
            // no inode has the number 0
            None => checks
                .require(found != 0 || checks.request.kind.is_of_group(), field.name, Rule::Owner, || "0".to_owned()),
        }
    }
}

/// The name under which failed checks of such a block are reported.
fn structure_name(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Superblock => "sb",
        BlockKind::Agf => "agf",
        BlockKind::Agi => "agi",
        BlockKind::Agfl => "agfl",
        BlockKind::Btree(kind) => kind.name(),
        BlockKind::InodeCluster => "dinode",
        BlockKind::Dquots => "dqblk",
        BlockKind::DirBlock | BlockKind::DirData => "dir2_data",
        BlockKind::DirLeaf1 | BlockKind::DirHash => "dir2_leaf",
        BlockKind::DirFree => "dir2_free",
        BlockKind::AttrHash => "attr_leaf",
        BlockKind::AttrRemote => "attr3_rmt",
        BlockKind::Symlink => "symlink",
        BlockKind::RtSuperblock => "rtsb",
        BlockKind::RtBitmap | BlockKind::RtSummary => "rtbuf_blkinfo",
    }
}

/// The checks of each structure's own fields.
fn contents(checks: &mut Checks<'_>) {
    match checks.request.kind {
        BlockKind::Superblock => superblock::verify(checks),
        BlockKind::Agf => agf::verify(checks),
        BlockKind::Agi => agi::verify(checks),
        BlockKind::Agfl => agfl::verify(checks),
        BlockKind::Btree(kind) => btree_block::verify(kind, checks),
        BlockKind::DirBlock | BlockKind::DirData => directory::verify_data(checks),
        BlockKind::DirLeaf1 => directory::verify_leaf(checks),
        BlockKind::DirHash => directory::verify_hash(checks),
        BlockKind::DirFree => directory::verify_free(checks),
        BlockKind::AttrHash => attributes::verify_hash(checks),
        BlockKind::Symlink => remote::verify_symlink(checks),
        BlockKind::RtSuperblock => realtime::verify_superblock(checks),
        BlockKind::RtBitmap | BlockKind::RtSummary => realtime::verify_bitmap(checks),
        BlockKind::InodeCluster | BlockKind::Dquots | BlockKind::AttrRemote => {}
    }
}
