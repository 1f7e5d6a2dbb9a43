//! Checks that a program can run alone in an image (ELF, 64 bits, little-endian).

/// The segment that names a program's loader (`PT_INTERP`).
const INTERPRETER: u32 = 3;

/// Why a program cannot be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("it is no program for Linux on x86-64 or ARM64")]
    Foreign,
    /// It needs a loader and libraries, which the image does not have.
    #[error("it needs a loader: build it for a musl target, or with -C target-feature=+crt-static")]
    Dynamic,
}

/// The architecture that a program is for, in OCI's words.
///
/// # Errors
/// If the program cannot run alone in an image.
pub fn architecture(program: &[u8]) -> Result<&'static str, PackError> {
    let machine = read::<2>(program, 18).map(u16::from_le_bytes);
    let architecture = match machine {
        Some(62) if is_elf(program) => "amd64",
        Some(183) if is_elf(program) => "arm64",
        _ => return Err(PackError::Foreign),
    };
    let is_dynamic = segments(program).ok_or(PackError::Foreign)?.contains(&INTERPRETER);
    if is_dynamic { Err(PackError::Dynamic) } else { Ok(architecture) }
}

fn is_elf(program: &[u8]) -> bool {
    program.starts_with(b"\x7fELF\x02\x01")
}

/// The types of the program's segments.
fn segments(program: &[u8]) -> Option<Vec<u32>> {
    let table = usize::try_from(u64::from_le_bytes(read(program, 32)?)).ok()?;
    let (size, count) = (u16::from_le_bytes(read(program, 54)?), u16::from_le_bytes(read(program, 56)?));
    let at = |index: u16| table.checked_add(usize::from(size) * usize::from(index));
    (0..count).map(|index| Some(u32::from_le_bytes(read(program, at(index)?)?))).collect()
}

fn read<const N: usize>(program: &[u8], at: usize) -> Option<[u8; N]> {
    program.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program's head with segments of these types.
    fn program(machine: u16, segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&u16::try_from(segments.len()).unwrap().to_le_bytes());
        for segment in segments {
            bytes.extend(segment.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn only_a_program_that_needs_nobody_is_packed() {
        for (bytes, expected) in [
            (program(62, &[6, 1, 1]), Ok("amd64")),
            (program(183, &[1]), Ok("arm64")),
            (program(62, &[6, 3, 1]), Err(PackError::Dynamic)),
            (program(40, &[1]), Err(PackError::Foreign)),
            (b"#!/bin/sh".to_vec(), Err(PackError::Foreign)),
            (program(62, &[1, 1])[..130].to_vec(), Ok("amd64")),
            (program(62, &[1, 1])[..100].to_vec(), Err(PackError::Foreign)),
            (Vec::new(), Err(PackError::Foreign)),
        ] {
            assert_eq!(architecture(&bytes), expected, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn the_end_of_the_table_may_lie_anywhere() {
        let mut bytes = program(62, &[1]);
        bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(architecture(&bytes), Err(PackError::Foreign));
    }
}
