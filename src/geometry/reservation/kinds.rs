//! The reservation of every kind of transaction.

use super::formulas::{DISK_DQUOT, DQUOTS, Formulas, Purpose, SYMLINK_MAX};
use super::inputs::ReservationInputs;

/// What one kind of transaction reserves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Bytes of log for one step.
    pub logres: u32,
    /// Steps that are reserved together; 0 and 1 both mean one.
    pub logcount: u32,
    /// The reservation can be renewed between steps.
    pub permanent: bool,
}

impl Reservation {
    fn once(logres: u64) -> Self {
        Reservation { logres: low_half(logres), logcount: 0, permanent: false }
    }

    fn counted(logres: u64, logcount: u32) -> Self {
        Reservation { logres: low_half(logres), logcount, permanent: false }
    }

    fn permanent(logres: u64, logcount: u32) -> Self {
        Reservation { logres: low_half(logres), logcount, permanent: true }
    }
}

/// The kernel computes in 32 bits and wraps.
#[allow(clippy::cast_possible_truncation)] // the lower half is what is asked for
pub(super) fn low_half(value: u64) -> u32 {
    value as u32
}

macro_rules! reservations {
    ($( $(#[$meta:meta])* $name:ident, )*) => {
        /// The reservation of every kind of transaction, in the kernel's order.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Reservations {
            $( $(#[$meta])* pub $name: Reservation, )*
        }

        impl Reservations {
            /// Every kind by its name, in the kernel's order.
            pub fn all(&self) -> Vec<(&'static str, Reservation)> {
                vec![$( (stringify!($name), self.$name), )*]
            }
        }
    };
}

reservations! {
    /// Allocation of extents for a write.
    write,
    /// Truncation.
    itruncate,
    /// Rename.
    rename,
    /// Link.
    link,
    /// Removal of a name.
    remove,
    /// Creation of a symbolic link.
    symlink,
    /// Creation of a file.
    create,
    /// Creation of a file without a name.
    create_tmpfile,
    /// Creation of a directory.
    mkdir,
    /// Freeing of an inode.
    ifree,
    /// Change of an inode.
    ichange,
    /// Growth of the data section.
    growdata,
    /// Addition of an attribute fork.
    addafork,
    /// Clearing of the set-id bits after a write.
    writeid,
    /// Removal of an attribute fork.
    attrinval,
    /// Setting of an attribute: the part known at mount.
    attrsetm,
    /// Setting of an attribute: the part for each block.
    attrsetrt,
    /// Removal of an attribute.
    attrrm,
    /// Clearing of a bucket of unlinked inodes.
    clearagi,
    /// Growth of the realtime section: allocation.
    growrtalloc,
    /// Growth of the realtime section: zeroing.
    growrtzero,
    /// Growth of the realtime section: freeing.
    growrtfree,
    /// Change of quota limits.
    qm_setqlim,
    /// Allocation of a quota block.
    qm_dqalloc,
    /// Change of the superblock.
    sb,
    /// Timestamps at a sync.
    fsyncts,
    /// End of an atomic write.
    atomic_ioend,
}

impl Reservations {
    /// The reservations of a filesystem of these numbers.
    pub fn new(inputs: &ReservationInputs) -> Self {
        Self::with(&Formulas::new(inputs, inputs.levels()))
    }

    pub(in crate::geometry) fn with(formulas: &Formulas<'_>) -> Self {
        let mut resv = Self::base(formulas);
        resv.namespace(formulas);
        let inputs = formulas.inputs;
        // one more step for each kind of deferred operation
        let deferred =
            u32::from(inputs.reflink || inputs.rmapbt) + u32::from(inputs.reflink) + u32::from(inputs.rmapbt);
        resv.itruncate.logcount += deferred;
        resv.write.logcount += deferred;
        resv.qm_dqalloc.logcount += deferred;
        resv.atomic_ioend = resv.itruncate;
        resv
    }

    fn base(formulas: &Formulas<'_>) -> Self {
        let permanent = Reservation::permanent;
        Reservations {
            write: permanent(formulas.write(Purpose::Running), 2),
            itruncate: permanent(formulas.itruncate(Purpose::Running), 2),
            create_tmpfile: permanent(DQUOTS + formulas.icreate_alloc() + formulas.iunlink_add(), 2),
            ifree: permanent(formulas.ifree(), 2),
            addafork: permanent(formulas.addafork(), 2),
            attrinval: permanent(formulas.attrinval(), 1),
            attrsetm: permanent(formulas.attrsetm(), 3),
            attrrm: permanent(formulas.attrrm(), 3),
            growrtalloc: permanent(formulas.growrtalloc(), 2),
            qm_dqalloc: permanent(formulas.qm_dqalloc(Purpose::Running), 2),
            growdata: permanent(formulas.sectors(3) + formulas.allocfree(1), 2),
            qm_setqlim: Reservation::counted(formulas.buffers(1, DISK_DQUOT), 1),
            sb: Reservation::counted(formulas.sectors(1), 1),
            ichange: Reservation::once(DQUOTS + formulas.inodes(1) + formulas.sectors(1)),
            fsyncts: Reservation::once(formulas.inodes(1)),
            writeid: Reservation::once(formulas.inodes(1)),
            attrsetrt: Reservation::once(formulas.attrsetrt()),
            clearagi: Reservation::once(formulas.sectors(1)),
            growrtzero: Reservation::once(formulas.blocks(1)),
            growrtfree: Reservation::once(formulas.growrtfree()),
            ..Reservations::default()
        }
    }

    /// Changes of directories; with parent pointers they carry a change of attributes.
    fn namespace(&mut self, formulas: &Formulas<'_>) {
        let (set, remove) = (u64::from(self.attrsetm.logres), u64::from(self.attrrm.logres));
        let (mut set_steps, mut remove_steps) = (self.attrsetm.logcount, self.attrrm.logcount);
        if !formulas.inputs.parent {
            (set_steps, remove_steps) = (0, 0);
        }
        let permanent = Reservation::permanent;
        self.rename = permanent(formulas.rename(set.max(remove)), 2 + set_steps.max(remove_steps));
        self.link = permanent(formulas.link(set), 2 + set_steps);
        self.remove = permanent(formulas.remove(remove), 2 + remove_steps);
        self.create = permanent(formulas.icreate(set), 2 + set_steps);
        self.mkdir = permanent(formulas.icreate(set), 3 + set_steps);
        self.symlink = permanent(formulas.icreate(set) + formulas.buffers(1, SYMLINK_MAX), 3 + set_steps);
    }
}
