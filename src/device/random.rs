//! Random numbers, straight from the kernel: that needs no `/dev`, which an initramfs may not have yet.

use rustix::rand::{GetRandomFlags, getrandom};
use uuid::{Builder, Uuid};

/// Bytes that nobody can guess.
///
/// # Panics
/// On kernels before 3.17, which have no such call; the standard library would not run well there either.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("invariant: the kernel has random numbers: {error}"),
        }
    }
    bytes
}

/// A UUID of version 4.
///
/// # Panics
/// As [`random_bytes`].
pub fn random_uuid() -> Uuid {
    Builder::from_random_bytes(random_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_different() {
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
        assert_ne!(random_bytes::<1000>()[900..], [0; 100]);
        assert_eq!(random_uuid().get_version_num(), 4);
    }
}
