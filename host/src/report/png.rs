//! A small image as PNG in a data address.
//!
//! It is stored, not compressed: images here have a few thousand pixels. PNG follows W3C's specification (second
//! edition), its zlib stream of stored blocks RFC 1950 and RFC 1951, base64 RFC 4648.

/// Returns `data:image/png;base64,…` of `width` × `height` pixels with one channel (grey) or three (red, green, blue),
/// eight bits each, row after row from the top.
pub(super) fn data_address(width: u32, height: u32, channels: u8, pixels: &[u8]) -> String {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Eight bits; grey or colour; the only methods of compression and filtering that exist, and no interlacing.
    header.extend([8, if channels == 3 { 2 } else { 0 }, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);

    let row = width as usize * usize::from(channels);
    let mut rows = Vec::with_capacity(pixels.len() + height as usize);
    for pixels in pixels.chunks(row.max(1)) {
        rows.push(0); // no filter
        rows.extend(pixels);
    }
    chunk(&mut file, b"IDAT", &stored(&rows));
    chunk(&mut file, b"IEND", &[]);
    format!("data:image/png;base64,{}", base64(&file))
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend((data.len() as u32).to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    let check = crc(file.get(start..).unwrap_or_default());
    file.extend(check.to_be_bytes());
}

/// Returns a zlib stream of stored blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = data.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(adler(data).to_be_bytes());
    out
}

/// Returns the CRC-32 of PNG, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, index| {
            bits << 8 | u32::from(group.get(index).copied().unwrap_or(0))
        });
        for digit in 0..4 {
            out.push(if digit <= group.len() {
                char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_the_published_ones() {
        // The check values of the CRC catalogue and of RFC 1950's example implementations.
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn base64_is_rfc_4648s() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn long_data_takes_several_blocks() {
        let data = vec![7u8; 70_000];
        let out = stored(&data);
        assert_eq!(out.len(), 2 + 2 * 5 + data.len() + 4);
        assert_eq!((out[2], out[2 + 5 + 65_535]), (0, 1));
    }
}
