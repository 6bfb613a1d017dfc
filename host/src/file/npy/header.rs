//! The header of an npy file: a Python dictionary of three entries, in the few forms that NumPy writes.
//!
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. The crates that read npy files parse every Python
//! literal for it, with a parser generator and numbers of any length, and take longer to build than all other
//! dependencies of Tercet.

/// The content of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// A type string; `None` for a record, whose fields are not read further.
    pub(super) descr: Option<String>,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// NumPy itself refuses longer headers by default (10,000 bytes); arrays of plain numbers need a hundred.
const MAX_HEADER: usize = 65_536;
/// The data of a file begins at a multiple of this.
const ALIGN: usize = 64;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Reads the header of a file, and returns the start of its values.
pub(super) fn read(bytes: &[u8]) -> Result<(Header, usize), String> {
    const TRUNCATED: &str = "it ends inside its header";
    let rest = bytes.strip_prefix(MAGIC).ok_or(TRUNCATED)?;
    let (&version, rest) = rest.split_first_chunk::<2>().ok_or(TRUNCATED)?;
    let (length, text) = match version {
        [1, 0] => {
            let (&length, text) = rest.split_first_chunk().ok_or(TRUNCATED)?;
            (usize::from(u16::from_le_bytes(length)), text)
        }
        [2 | 3, 0] => {
            let (&length, text) = rest.split_first_chunk().ok_or(TRUNCATED)?;
            (u32::from_le_bytes(length) as usize, text)
        }
        [major, minor] => return Err(format!("unsupported version: ({major}, {minor})")),
    };
    if length > MAX_HEADER {
        return Err(format!("its header is longer than {MAX_HEADER} bytes"));
    }
    let start = bytes.len() - text.len() + length;
    let text = text.get(..length).ok_or(TRUNCATED)?;
    Ok((parse(text)?, start))
}

/// Returns the header of an array in C order, padded so that its values are aligned.
pub(super) fn write(descr: &str, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length come before it, a new line after it.
    let padded = (10 + text.len() + 1).next_multiple_of(ALIGN) - 11;
    let length = u16::try_from(padded + 1).expect("a shape has far fewer than thousands of sizes");
    let mut header = [&MAGIC[..], &[1, 0], &length.to_le_bytes()].concat();
    header.extend(format!("{text:padded$}\n").bytes());
    header
}

fn parse(text: &[u8]) -> Result<Header, String> {
    let mut rest = Rest(text);
    let (mut descr, mut order, mut shape) = (None, None, None);
    rest.expect(b'{')?;
    while !rest.take(b'}') {
        let key = rest.text()?;
        rest.expect(b':')?;
        match key.as_str() {
            "descr" if rest.peek() == Some(b'[') => {
                // Its fields nest, and none of them is read.
                let (fortran_order, shape) = (false, Vec::new());
                return Ok(Header {
                    descr: None,
                    fortran_order,
                    shape,
                });
            }
            "descr" => descr = Some(rest.text()?),
            "fortran_order" => order = Some(rest.truth()?),
            "shape" => shape = Some(rest.sizes()?),
            _ => return Err(format!("its header has the unknown key '{key}'")),
        }
        if !rest.take(b',') {
            rest.expect(b'}')?;
            break;
        }
    }
    if rest.peek().is_some() {
        return Err(rest.not_python());
    }
    let missing = |key: &str| format!("its header's dictionary is missing key '{key}'");
    Ok(Header {
        descr: Some(descr.ok_or_else(|| missing("descr"))?),
        fortran_order: order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

/// The rest to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.0 = &self.0[usize::from(found)..];
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(b'(' | b'[' | b'{') => "its header nests too deeply".to_owned(),
            _ => self.not_python(),
        })
    }

    fn not_python(&self) -> String {
        let left = self.0.len();
        format!(
            "its header is not a Python dictionary of an array, {left} bytes before the header's end"
        )
    }

    /// Reads bytes up to the first for which `end` is true, or to the end.
    fn until(&mut self, end: impl FnMut(&u8) -> bool) -> &'a [u8] {
        let found = self.0.iter().position(end);
        let (part, rest) = self.0.split_at(found.unwrap_or(self.0.len()));
        self.0 = rest;
        part
    }

    /// Reads a string in quotes of either kind. NumPy escapes nothing in the keys or in the types of numbers.
    fn text(&mut self) -> Result<String, String> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.unwrap_or(b'\'');
        self.expect(quote)?;
        let text =
            self.until(|&byte| byte == quote || !matches!(byte, b' '..=b'~') || byte == b'\\');
        self.expect(quote)?;
        Ok(text.iter().copied().map(char::from).collect())
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.peek();
        match self.until(|byte| !byte.is_ascii_alphanumeric()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err("'fortran_order' in its header is neither True nor False".to_owned()),
        }
    }

    /// Reads a tuple or a list of sizes.
    fn sizes(&mut self) -> Result<Vec<u64>, String> {
        let close = if self.take(b'[') {
            b']'
        } else {
            self.expect(b'(')?;
            b')'
        };
        let mut sizes = Vec::new();
        while !self.take(close) {
            sizes.push(self.size()?);
            if !self.take(b',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(sizes)
    }

    fn size(&mut self) -> Result<u64, String> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(b'-') => return Err("a size in its header is negative".to_owned()),
            // The error says what is expected.
            _ => self.expect(b'0')?,
        }
        let digits = self.until(|&byte| byte != b'_' && !byte.is_ascii_alphanumeric());
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err("a number in its header is not decimal".to_owned());
        }
        let digits = digits.iter().map(|digit| u64::from(digit - b'0'));
        let size = digits
            .into_iter()
            .try_fold(0u64, |size, digit| size.checked_mul(10)?.checked_add(digit));
        size.ok_or_else(|| "a number in its header overflows".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Header, String> {
        parse(text.as_bytes())
    }

    #[test]
    fn a_header_is_read_in_any_order_and_spacing() {
        let expected = Header {
            descr: Some("<f4".to_owned()),
            fortran_order: true,
            shape: vec![2, 3],
        };
        for text in [
            "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
            "{'descr':'<f4','fortran_order':True,'shape':(2,3)}   \n",
            "  { \"shape\" : [ 2 , 3 , ] , 'fortran_order' : True , 'descr' : \"<f4\" } \n",
        ] {
            assert_eq!(parsed(text).as_ref(), Ok(&expected), "{text}");
        }
        let shape = |text: &str| {
            let text = format!("{{'descr': '|i1', 'fortran_order': False, 'shape': {text}, }}");
            parsed(&text).map(|header| header.shape)
        };
        assert_eq!(shape("()"), Ok(vec![]));
        assert_eq!(shape("(7,)"), Ok(vec![7]));
        assert_eq!(shape("(18446744073709551615, 0)"), Ok(vec![u64::MAX, 0]));
        for bad in [
            "(,)", "(2 3)", "(2, 3]", "(1.5,)", "(2, 3", "7", "(+1,)", "('2',)",
        ] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_fields_of_a_record_are_not_read() {
        let records = "{'descr': [('a', '<f4', (2,)), ('b', [('c', '|O')])], 'fortran_order': False, 'shape': (3,), }";
        assert_eq!(parsed(records).map(|header| header.descr), Ok(None));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        for len in 0..whole.len() {
            assert!(parsed(&whole[..len]).is_err(), "{len} bytes");
        }
        for bad in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } {",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1, }",
            "{'descr': '<\\x664', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
            "{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }",
            "{'descr': b'<f4', 'fortran_order': False, 'shape': (2,), }",
            "{descr: '<f4', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', , 'fortran_order': False, 'shape': (2,), }",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_aligned_and_read_back() {
        // They include two texts that end at the boundary and just past it.
        for dims in 0..40 {
            let shape = vec![7; dims];
            let header = write("<f4", &shape);
            assert!(header.len().is_multiple_of(ALIGN) && header.ends_with(b"\n"));
            let read = read(&header).unwrap();
            let expected = Header {
                descr: Some("<f4".to_owned()),
                fortran_order: false,
                shape: vec![7; dims],
            };
            assert_eq!(read, (expected, header.len()));
        }
        let expected = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }";
        let header = write("<f4", &[2, 3]);
        assert!(header.starts_with(expected) && header.len() == 128);
    }
}
