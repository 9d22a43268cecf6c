//! The checksum of v5 metadata: crc32c over the whole structure with the checksum field taken as zero, stored
//! inverted and little-endian (Linux `fs/xfs/libxfs/xfs_cksum.h`).

/// The CRC of `bytes`, whose own CRC field lies at `offset` and is read as zero.
pub fn checksum(bytes: &[u8], offset: usize) -> u32 {
    let head = crc32c::crc32c(bytes.get(..offset).unwrap_or(bytes));
    let head = crc32c::crc32c_append(head, &[0; 4]);
    crc32c::crc32c_append(head, bytes.get(offset + 4..).unwrap_or(&[]))
}

/// The CRC stored at `offset`; 0 when `bytes` are too few.
pub fn stored(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|field| field.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Whether the CRC stored at `offset` is that of `bytes`.
pub fn matches(bytes: &[u8], offset: usize) -> bool {
    bytes.len() >= offset + 4 && stored(bytes, offset) == checksum(bytes, offset)
}

/// Computes the CRC of `bytes` and stores it at `offset`.
///
/// # Panics
/// When `bytes` end before `offset + 4`.
pub fn stamp(bytes: &mut [u8], offset: usize) {
    let crc = checksum(bytes, offset);
    bytes[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamped_bytes_match_and_a_flipped_bit_does_not() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        stamp(&mut bytes, 100);
        assert!(matches(&bytes, 100));
        bytes[7] ^= 1;
        assert!(!matches(&bytes, 100));
    }
}
