//! Points from files: every type, every format, and files that are none.

use std::fs;

use crate::files::{Folder, Given, le, raw_npy, safetensors, weights};
use proptest::prelude::*;
use safetensors::Dtype;
use tercet_core::block::Format;
use tercet_core::quant::Rule;
use tercet_core::quant::calibrate::{RangeRule, Scheme};
use tercet_host::convert::{Per, Target};
use tercet_host::parallel::Threads;
use tercet_host::points::{
    Codes, Destination, Points, ReadOptions, Values, read_weights, side_files, write_centroids,
    write_labels, write_points, write_representatives,
};
use tercet_host::{Error, QuantizeOptions, TensorFile, quantize};

fn open(folder: &Folder, spec: &str) -> Result<Points, Error> {
    let path = folder.file(spec);
    Points::open(path.to_str().unwrap(), &ReadOptions::default())
}

fn refused(folder: &Folder, spec: &str) -> String {
    let error = open(folder, spec).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn npy(folder: &Folder, name: &str, descr: &str, shape: &str, data: &[u8]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    raw_npy(&folder.file(name), &header, data);
}

fn csv(folder: &Folder, text: &str) -> Result<Points, Error> {
    fs::write(folder.file("data.csv"), text).unwrap();
    open(folder, "data.csv")
}

fn to<'a>(path: &'a std::path::Path) -> Destination<'a> {
    Destination {
        path,
        inputs: &[],
        overwrite: true,
    }
}

/// The same six small integers in every type that is read.
#[test]
fn every_type_gives_the_same_values() {
    const WANTED: [f32; 6] = [0.0, 1.0, 5.0, 100.0, 127.0, 2.0];
    let folder = Folder::new();
    let bytes =
        |each: &dyn Fn(f32) -> Vec<u8>| WANTED.iter().flat_map(|&x| each(x)).collect::<Vec<u8>>();
    let types: [(&str, Vec<u8>); 11] = [
        ("|i1", bytes(&|x| vec![x as u8])),
        ("|u1", bytes(&|x| vec![x as u8])),
        ("<i2", bytes(&|x| (x as i16).to_le_bytes().to_vec())),
        ("<u2", bytes(&|x| (x as u16).to_le_bytes().to_vec())),
        ("<i4", bytes(&|x| (x as i32).to_le_bytes().to_vec())),
        ("<u4", bytes(&|x| (x as u32).to_le_bytes().to_vec())),
        ("<i8", bytes(&|x| (x as i64).to_le_bytes().to_vec())),
        ("<u8", bytes(&|x| (x as u64).to_le_bytes().to_vec())),
        (
            "<f2",
            bytes(&|x| half::f16::from_f32(x).to_le_bytes().to_vec()),
        ),
        ("<f4", bytes(&|x| x.to_le_bytes().to_vec())),
        ("<f8", bytes(&|x| f64::from(x).to_le_bytes().to_vec())),
    ];
    for (descr, bytes) in types {
        npy(&folder, "a.npy", descr, "(3, 2)", &bytes);
        let points = open(&folder, "a.npy").unwrap();
        assert_eq!(
            (points.rows(), points.dims(), points.name()),
            (3, 2, "a"),
            "{descr}"
        );
        assert_eq!(*points.to_f32(), WANTED, "{descr}");
        let mut row = [0.0; 2];
        points.read_row(1, &mut row).unwrap();
        assert_eq!(row, [5.0, 100.0], "{descr}");
        assert!(points.read_row(3, &mut row).is_none());
        // All of them fit int8, so the codes are the values.
        let codes = points
            .to_codes(RangeRule::AbsMax, Scheme::Symmetric)
            .unwrap();
        assert_eq!(codes.codes, [0, 1, 5, 100, 127, 2], "{descr}");
        assert!(codes.exact && codes.grid.scale == 1.0 && codes.grid.zero_point == 0);
    }
    let bf16 = bytes(&|x| half::bf16::from_f32(x).to_le_bytes().to_vec());
    let given = [Given::new("t", Dtype::BF16, &[3, 2], bf16)];
    safetensors(&folder.file("b.safetensors"), &given, &[]);
    assert_eq!(*open(&folder, "b.safetensors").unwrap().to_f32(), WANTED);
}

#[test]
fn small_integers_stay_small_integers() {
    let folder = Folder::new();
    npy(&folder, "i.npy", "|i1", "(2, 2)", &[0x80, 0xff, 0, 0x7f]);
    let points = open(&folder, "i.npy").unwrap();
    assert_eq!(*points.values(), Values::int8(vec![-128, -1, 0, 127]));
    npy(&folder, "u.npy", "|u1", "(2, 2)", &[0, 1, 254, 255]);
    let points = open(&folder, "u.npy").unwrap();
    assert_eq!(*points.values(), Values::U8(vec![0, 1, 254, 255]));
    let codes = points.to_codes(RangeRule::AbsMax, Scheme::Affine).unwrap();
    assert_eq!(codes.codes, [-128, -127, 126, 127]);
    assert!(codes.exact);
    assert_eq!(codes.to_f32(), [0.0, 1.0, 254.0, 255.0]);
    // Without a zero point 255 steps do not fit 127 codes.
    let codes = points
        .to_codes(RangeRule::AbsMax, Scheme::Symmetric)
        .unwrap();
    assert_eq!(
        (codes.grid.zero_point, codes.codes[3], codes.exact),
        (0, 127, false)
    );
    npy(&folder, "b.npy", "|b1", "(2, 2)", &[0, 1, 1, 0]);
    assert_eq!(
        *open(&folder, "b.npy").unwrap().to_f32(),
        [0.0, 1.0, 1.0, 0.0]
    );
}

#[test]
fn shapes_are_rows_of_the_rest() {
    let folder = Folder::new();
    for (shape, rows, dims) in [
        ("(12,)", 12, 1),
        ("(3, 4)", 3, 4),
        ("(3, 2, 2)", 3, 4),
        ("(2, 3, 1, 2)", 2, 6),
    ] {
        npy(&folder, "a.npy", "|u1", shape, &[7; 12]);
        let points = open(&folder, "a.npy").unwrap();
        assert_eq!((points.rows(), points.dims()), (rows, dims), "{shape}");
    }
    npy(&folder, "a.npy", "|u1", "()", &[7]);
    assert_eq!(open(&folder, "a.npy").unwrap().rows(), 1);
    for shape in ["(0, 3)", "(3, 0)", "(0,)"] {
        npy(&folder, "a.npy", "<f4", shape, &[]);
        assert!(
            refused(&folder, "a.npy").contains("has no values"),
            "{shape}"
        );
    }
}

#[test]
fn tensors_are_named_or_the_only_ones() {
    let folder = Folder::new();
    let table = |name| Given::f32(name, &[2, 2], &[1.5, 2.0, 3.0, 4.0]);
    let bias = Given::f32("bias", &[2], &[1.0, 2.0]);
    let file = folder.file("m.safetensors");
    safetensors(&file, &[table("w"), bias], &[]);
    assert_eq!(open(&folder, "m.safetensors").unwrap().name(), "w");
    assert_eq!(open(&folder, "m.safetensors:bias").unwrap().rows(), 2);
    let line = refused(&folder, "m.safetensors:bais");
    assert!(
        line.contains("no tensor named `bais`") && line.contains("`bias`"),
        "{line}"
    );

    safetensors(&file, &[table("one"), table("two:b")], &[]);
    let line = refused(&folder, "m.safetensors");
    assert!(
        line.contains("2 tensors") && line.contains("`one`, `two:b`"),
        "{line}"
    );
    assert_eq!(
        open(&folder, "m.safetensors:two:b").unwrap().name(),
        "two:b"
    );

    let line = refused(&folder, "absent.npy");
    assert!(line.contains("absent.npy: cannot open"), "{line}");
    let line = refused(&folder, "absent.safetensors:w");
    assert!(line.contains("absent.safetensors: cannot open"), "{line}");
    csv(&folder, "1\n").unwrap();
    assert!(refused(&folder, "data.csv:x").contains("a text file has no tensors"));
}

#[test]
fn quantized_tensors_are_what_they_stand_for() {
    let folder = Folder::new();
    let values = weights(5, 8 * 256);
    let file = folder.file("m.safetensors");
    safetensors(&file, &[Given::f32("w", &[8, 256], &values)], &[]);
    let model = TensorFile::open(&file).unwrap();
    let written = |target, per, name: &str| {
        let mut options = QuantizeOptions::new(target);
        options.per = per;
        if target == Target::Blocks(Format::Tq2_0) {
            options.rule = Some(Rule::AbsMax);
        }
        quantize(
            &mut Threads::default(),
            &model,
            &options,
            &folder.file(name),
            &(),
        )
        .unwrap();
        open(&folder, name).unwrap()
    };
    let close = |points: &Points, most: f32| {
        assert_eq!((points.rows(), points.dims()), (8, 256));
        let found = points.to_f32();
        let worst = found
            .iter()
            .zip(&values)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst > 0.0 && worst <= most, "{worst}");
    };
    let largest = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    close(
        &written(Target::Blocks(Format::Q8_0), None, "q.gguf"),
        largest / 127.0,
    );
    close(
        &written(Target::Blocks(Format::Tq2_0), None, "t.gguf"),
        largest,
    );
    close(
        &written(Target::Int8, Some(Per::Row), "r.safetensors"),
        largest / 127.0,
    );

    // One scale for the tensor: the codes themselves, on their grid.
    let points = written(Target::Int8, Some(Per::Tensor), "i.safetensors");
    close(&points, largest / 127.0);
    let Values::I8 { codes, grid } = points.values() else {
        panic!("{:?}", points.values());
    };
    let again = points
        .to_codes(RangeRule::AbsMax, Scheme::Symmetric)
        .unwrap();
    assert_eq!(
        (&again.codes, &again.grid, again.exact),
        (codes, grid, true)
    );
    assert!(grid.scale > 0.0 && grid.scale < 1.0);
}

#[test]
fn values_that_are_no_numbers_are_named_by_row_and_column() {
    let folder = Folder::new();
    for (bad, row, column) in [(0, 0, 0), (5, 1, 1), (11, 2, 3)] {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [1.0f32; 12];
            values[bad] = value;
            npy(&folder, "a.npy", "<f4", "(3, 4)", &le(&values));
            let line = refused(&folder, "a.npy");
            let place = format!("row {row}, column {column} (from 0) is not finite");
            assert!(line.contains(&place), "{line}");
        }
    }
    let wide = [1.0f64, 1e39].map(f64::to_le_bytes).concat();
    npy(&folder, "a.npy", "<f8", "(1, 2)", &wide);
    assert!(refused(&folder, "a.npy").contains("column 1 (from 0) is not finite as f32"));
    let wide = [1i64, (1 << 24) + 1].map(i64::to_le_bytes).concat();
    npy(&folder, "a.npy", "<i8", "(2, 1)", &wide);
    let line = refused(&folder, "a.npy");
    assert!(
        line.contains("row 1, column 0 (from 0) is 16777217, which f32 cannot hold exactly"),
        "{line}"
    );
    npy(&folder, "a.npy", "<c8", "(1, 1)", &[0; 8]);
    assert!(refused(&folder, "a.npy").contains("unknown dtype"));
}

#[test]
fn text_is_read_with_its_header_and_its_delimiter() {
    let folder = Folder::new();
    for (text, header) in [
        ("1,2\n3,4\n", None),
        ("1,2\r\n3,4", None),
        ("\u{feff}1,2\n3,4\n", None),
        ("\n\n1,2\n\n3,4\n\n", None),
        (" 1 , 2 \n\"3\",\" 4\"\n", None),
        ("a,b\n1,2\n3,4\n", Some(["a", "b"])),
        ("a;b\n1;2\n3;4\n", Some(["a", "b"])),
        ("a\tb\n1\t2\n3\t4\n", Some(["a", "b"])),
        ("\"x, cm\"\ty\n1\t2\n3\t4\n", Some(["x, cm", "y"])),
        ("1e0,+2\n3.0,0.4e1\n", None),
    ] {
        let points = csv(&folder, text).unwrap();
        assert_eq!((points.rows(), points.dims()), (2, 2), "{text:?}");
        assert_eq!(*points.to_f32(), [1.0, 2.0, 3.0, 4.0], "{text:?}");
        let found: Option<Vec<&str>> = points
            .header()
            .map(|h| h.iter().map(String::as_str).collect());
        assert_eq!(
            found.as_deref(),
            header.as_ref().map(|h| &h[..]),
            "{text:?}"
        );
    }
    let one = csv(&folder, "3\n-0.5\n").unwrap();
    assert_eq!((one.rows(), one.dims()), (2, 1));

    fs::write(folder.file("data.csv"), "1,5;2\n3;4,5\n").unwrap();
    let path = folder.file("data.csv");
    let options = ReadOptions {
        delimiter: Some(b','),
    };
    assert!(Points::open(path.to_str().unwrap(), &options).is_err());
    // An npy file by another name is one.
    npy(&folder, "odd.csv", "|u1", "(1, 2)", &[1, 2]);
    assert_eq!(
        *open(&folder, "odd.csv").unwrap().values(),
        Values::U8(vec![1, 2])
    );
}

#[test]
fn bad_text_is_refused_by_line_and_column() {
    let folder = Folder::new();
    for (text, wanted) in [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        ("a,b\n", "it has no line of numbers"),
        ("1,2\n3\n", "line 2 has 1 fields, but the first line has 2"),
        (
            "a,b\n1,2\n3,4,5\n",
            "line 3 has 3 fields, but the first line has 2",
        ),
        ("1,2\n3,x\n", "line 2, column 2: `x` is not a number"),
        ("1,2\n3,\n", "line 2, column 2: the field is empty"),
        ("1,2\n,4\n", "line 2, column 1: the field is empty"),
        ("1,b\n", "line 1, column 2: `b` is not a number"),
        ("a,b\nc,d\n", "line 2, column 1: `c` is not a number"),
        ("1,NaN\n", "line 1, column 2: `NaN` is not a finite f32"),
        ("inf\n", "line 1, column 1: `inf` is not a finite f32"),
        ("1,-1e39\n", "column 2: `-1e39` is not a finite f32"),
        ("1;2\n1,5;2\n", "line 2, column 1: `1,5` is not a number"),
        ("1\n0x10\n", "`0x10` is not a number"),
        ("1\n1 2\n", "`1 2` is not a number"),
        ("1\n\"open\n2\n", "line 2, column 1: `open"),
        ("1\n\u{1b}[31m\n", "`\\u{1b}[31m` is not a number"),
    ] {
        let error = csv(&folder, text).unwrap_err().to_string();
        assert!(error.contains("data.csv: bad csv file: "), "{error}");
        assert!(error.contains(wanted), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error:?}");
    }
    fs::write(folder.file("data.csv"), b"1,2\n3,\xff\xfe\n").unwrap();
    assert!(refused(&folder, "data.csv").contains("line 2, column 2"));
    let long = format!("1\n{}\n", "x".repeat(100_000));
    assert!(csv(&folder, &long).unwrap_err().to_string().len() < 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever text there is: points, or an error of one line. Nothing panics.
    #[test]
    fn any_text_is_points_or_an_error(text in "[0-9a-c,;\t\n\r\" .eE+\\-]{0,60}") {
        let folder = Folder::new();
        match csv(&folder, &text) {
            Ok(points) => prop_assert_eq!(points.values().len(), points.rows() * points.dims()),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }

    /// What is rounded to a grid is less than half a step away, and on it twice is on it once.
    #[test]
    fn codes_stay_near_their_values(
        values in prop::collection::vec(-1e6f32..1e6, 2..40),
        affine in any::<bool>(),
    ) {
        let scheme = if affine { Scheme::Affine } else { Scheme::Symmetric };
        let points = Points::new("p", values.len(), 1, Values::F32(values.clone())).unwrap();
        let codes = points.to_codes(RangeRule::MinMax, scheme).unwrap();
        prop_assert!(affine || codes.grid.zero_point == 0);
        for (x, y) in values.iter().zip(codes.to_f32()) {
            prop_assert!((x - y).abs() <= codes.grid.scale * 0.501, "{} {}", x, y);
        }
        let again = Points::new("p", values.len(), 1, Values::F32(codes.to_f32())).unwrap();
        prop_assert_eq!(again.on_grid(&codes.grid).unwrap().codes, codes.codes);
    }
}

#[test]
fn centroids_come_back_as_the_same_codes() {
    let folder = Folder::new();
    let kinds: [(&str, Values); 4] = [
        ("int8", Values::int8(vec![-128, 0, 5, 127])),
        ("uint8", Values::U8(vec![0, 3, 200, 255])),
        ("floats", Values::F32(vec![-0.3, 0.1, 7.25, 0.123])),
        ("positive", Values::F32(vec![10.5, 11.0, 12.25, 13.0])),
    ];
    for (name, values) in kinds {
        let points = Points::new(name, 2, 2, values).unwrap();
        let Codes { grid, .. } = points.to_codes(RangeRule::MinMax, Scheme::Affine).unwrap();
        let centroids = [grid.low, 3, -77, grid.high];
        for file in ["c.npy", "c.csv", "c.safetensors"] {
            let path = folder.file(file);
            let size = write_centroids(to(&path), &centroids, &grid, &points).unwrap();
            assert_eq!(size, path.metadata().unwrap().len());
            let read = open(&folder, file).unwrap();
            assert_eq!((read.rows(), read.dims()), (2, 2));
            assert_eq!(
                read.on_grid(&grid).unwrap().codes,
                centroids,
                "{name} {file}"
            );
        }
        let dtype = match name {
            "int8" => "|i1",
            _ => "<f4",
        };
        let npy = fs::read(folder.file("c.npy")).unwrap();
        assert!(
            String::from_utf8_lossy(&npy[..128]).contains(dtype),
            "{name}"
        );
    }
}

#[test]
fn outputs_are_refused_before_they_are_begun() {
    let folder = Folder::new();
    let (text, npy) = (folder.file("c.txt"), folder.file("l.npy"));
    let grid = Points::new("p", 1, 1, Values::int8(vec![1])).unwrap();
    assert!(write_points(to(&text), &grid).is_err());
    assert!(write_labels(to(&text), &[1]).is_err());
    let csv = folder.file("l.csv");
    assert!(write_labels(to(&npy), &[u32::MAX]).is_err());
    assert!(write_labels(to(&csv), &[u32::MAX]).is_err());
    let codes = grid.to_codes(RangeRule::MinMax, Scheme::Affine).unwrap();
    let planar = Points::from_rows(2, vec![1i8, 2]).unwrap();
    assert!(write_centroids(to(&csv), &[1, 2, 3], &codes.grid, &planar).is_err());
    assert!(folder.names().is_empty());
    write_labels(to(&npy), &[0, 7]).unwrap();
    let bytes = fs::read(&npy).unwrap();
    assert!(bytes.ends_with(&[0, 0, 0, 0, 7, 0, 0, 0]));
    let kept = Destination {
        overwrite: false,
        ..to(&npy)
    };
    assert!(matches!(
        write_labels(kept, &[1]),
        Err(Error::OutputExists { .. })
    ));
    assert!(matches!(
        kept.check(&["npy"]),
        Err(Error::OutputExists { .. })
    ));
    let own = [npy.as_path()];
    let input = Destination {
        inputs: &own,
        ..to(&npy)
    };
    assert!(matches!(
        input.check(&["npy"]),
        Err(Error::OutputIsInput { .. })
    ));
}

#[test]
fn csv_results_are_lines_that_read_back() {
    let folder = Folder::new();
    let labels = folder.file("l.csv");
    assert_eq!(write_labels(to(&labels), &[0, 7, 12]).unwrap(), 7);
    assert_eq!(fs::read_to_string(&labels).unwrap(), "0\n7\n12\n");

    // Names that need quotes, and floats of every size.
    let given = csv(
        &folder,
        "\"x, m\",\"a \"\"b\"\"\"\n0.1,-1e-12\n3e38,16777217\n-0,1e-5\n",
    )
    .unwrap();
    let points = folder.file("p.csv");
    write_points(to(&points), &given).unwrap();
    assert_eq!(
        fs::read_to_string(&points).unwrap(),
        "\"x, m\",\"a \"\"b\"\"\"\n0.1,-1e-12\n3e38,16777216\n-0,0.00001\n"
    );
    let read = open(&folder, "p.csv").unwrap();
    assert_eq!(read.header(), given.header());
    assert_eq!(read.values(), given.values());

    // Separators stay what they were.
    let given = csv(&folder, "a;b,c\n1;2\n0.5;4\n").unwrap();
    write_points(to(&points), &given.select(&[1]).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(&points).unwrap(), "a;b,c\n0.5;4\n");
    let Codes { grid, codes, .. } = given.to_codes(RangeRule::MinMax, Scheme::Affine).unwrap();
    write_centroids(to(&points), &codes, &grid, &given).unwrap();
    let written = fs::read_to_string(&points).unwrap();
    assert!(
        written.starts_with("a;b,c\n") && written.matches(';').count() == 3,
        "{written}"
    );

    // More lines than are collected at a time.
    let many: Vec<u32> = (0..9000).collect();
    write_labels(to(&labels), &many).unwrap();
    let lines = fs::read_to_string(&labels).unwrap();
    assert!(
        lines
            .lines()
            .map(|line| line.parse::<u32>().unwrap())
            .eq(many)
    );
}

proptest! {
    /// Every finite float, by its bits.
    #[test]
    fn floats_survive_csv(bits in prop::collection::vec(any::<u32>(), 1..40)) {
        let values: Vec<f32> = bits.into_iter().map(f32::from_bits).filter(|x| x.is_finite()).collect();
        prop_assume!(!values.is_empty());
        let folder = Folder::new();
        let path = folder.file("p.csv");
        let points = Points::from_rows(1, values.clone()).unwrap();
        write_points(to(&path), &points).unwrap();
        let read = open(&folder, "p.csv").unwrap().to_f32().into_owned();
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&read), bits(&values));
    }
}

#[test]
fn representatives_keep_their_type_their_weights_and_their_rows() {
    let folder = Folder::new();
    let all = Points::new("images", 3, 2, Values::U8(vec![1, 2, 3, 4, 5, 255])).unwrap();
    let chosen = all.select(&[2, 0]).unwrap();
    assert_eq!(*chosen.values(), Values::U8(vec![5, 255, 1, 2]));
    let npy = folder.file("r.npy");
    write_representatives(to(&npy), &chosen, &[7, 9], &[2, 0]).unwrap();
    let sides = |path: &std::path::Path| <[_; 2]>::try_from(side_files(path)).unwrap();
    let [weights, indices] = sides(&npy);
    assert_eq!(open(&folder, "r.npy").unwrap().values(), chosen.values());
    let options = ReadOptions::default();
    let read = |path: &std::path::Path| read_weights(path.to_str().unwrap(), 2, &options).unwrap();
    assert_eq!((read(&weights), read(&indices)), (vec![7, 9], vec![2, 0]));

    let text = folder.file("r.csv");
    write_representatives(to(&text), &chosen, &[7, 9], &[2, 0]).unwrap();
    assert_eq!(fs::read_to_string(&text).unwrap(), "5,255\n1,2\n");
    let [weights, indices] = sides(&text);
    assert_eq!(weights, folder.file("r.weights.csv"));
    assert_eq!((read(&weights), read(&indices)), (vec![7, 9], vec![2, 0]));

    let file = folder.file("r.safetensors");
    assert!(side_files(&file).is_empty());
    write_representatives(to(&file), &chosen, &[7, 9], &[2, 0]).unwrap();
    assert_eq!(
        open(&folder, "r.safetensors").unwrap().values(),
        chosen.values()
    );
    let spec = format!("{}:weights", file.display());
    assert_eq!(read_weights(&spec, 2, &options).unwrap(), [7, 9]);
}

#[test]
fn weights_are_whole_numbers_one_a_point() {
    let folder = Folder::new();
    let read = |name: &str| {
        let path = folder.file(name);
        read_weights(path.to_str().unwrap(), 3, &ReadOptions::default())
    };
    let exact = [0i64, 16_777_217, 4_294_967_295]
        .map(i64::to_le_bytes)
        .concat();
    npy(&folder, "w.npy", "<i8", "(3,)", &exact);
    assert_eq!(read("w.npy").unwrap(), [0, 16_777_217, u32::MAX]);
    npy(&folder, "w.npy", "|u1", "(3, 1)", &[1, 2, 3]);
    assert_eq!(read("w.npy").unwrap(), [1, 2, 3]);
    fs::write(folder.file("w.csv"), "w\n1\n0\n2.0\n").unwrap();
    assert_eq!(read("w.csv").unwrap(), [1, 0, 2]);

    for (text, wanted) in [
        ("1\n2\n", "2 weights for 3 points"),
        ("1\n2\n3\n4\n", "4 weights for 3 points"),
        (
            "1\n-2\n3\n",
            "weight -2 of row 1 (from 0) is not a whole number",
        ),
        ("1\n2\n0.5\n", "weight 0.5 of row 2"),
        (
            "1\n16777218\n1\n",
            "weight 16777218 of row 1 (from 0) is not a whole number from 0 to 16777216",
        ),
    ] {
        fs::write(folder.file("w.csv"), text).unwrap();
        let line = read("w.csv").unwrap_err().to_string();
        assert!(line.contains(wanted), "{line}");
    }
    let negative = [1i32, -1, 1].map(i32::to_le_bytes).concat();
    npy(&folder, "w.npy", "<i4", "(3,)", &negative);
    assert!(
        read("w.npy")
            .unwrap_err()
            .to_string()
            .contains("weight -1 of row 1")
    );
}
