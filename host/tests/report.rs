//! Reports are well-formed, self-contained and hold what they should.

use tercet_host::points::{Points, Values};
use tercet_host::report::{Clusters, Elbow, Page, Picture, Trial};

/// Checks that a text is well-formed XML, as far as reports use it: tags nest, attributes are quoted and named once,
/// entities are known. Gives the names of the elements in order.
fn elements(text: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let mut rest = text.strip_prefix("<!doctype html>").unwrap_or(text);
    while let Some(start) = rest.find('<') {
        entities(&rest[..start]);
        let tag = &rest[start + 1..];
        let (inside, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "closed where it was not open"
            );
            continue;
        }
        let (inside, alone) = match inside.strip_suffix('/') {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let (name, mut attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name:?}");
        let mut names = Vec::new();
        while !attributes.trim().is_empty() {
            let (name, value) = attributes.trim_start().split_once("=\"").expect("name=\"");
            let (value, after) = value.split_once('"').expect("a value ends");
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphabetic() || c == '-' || c.is_ascii_digit()),
                "{name:?}"
            );
            assert!(!names.contains(&name), "{name} stands twice");
            assert!(after.is_empty() || after.starts_with(' '), "{after}");
            entities(value);
            names.push(name);
            attributes = after;
        }
        all.push(name.to_owned());
        if !alone {
            open.push(name.to_owned());
        }
    }
    entities(rest);
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    all
}

fn entities(text: &str) {
    for part in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;"];
        assert!(
            known.iter().any(|entity| part.starts_with(entity)),
            "&{part}"
        );
    }
}

/// No address but the name of SVG's own vocabulary and data within the file; no script.
fn stands_alone(text: &str) {
    let text = text.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "url(", "@import", "<script", " src="] {
        assert!(!text.contains(word), "{word}");
    }
    for address in text.split("href=\"").skip(1) {
        assert!(address.starts_with("data:image/png;base64,"));
    }
}

/// Every number of the picture is finite, and within the picture where it is a place.
fn drawn_within(svg: &str) {
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
    let (width, rest) = size.split_once(' ').unwrap();
    let height: f64 = rest.split_once('"').unwrap().0.parse().unwrap();
    let width: f64 = width.parse().unwrap();
    for (names, most) in [
        (["x", "x1", "x2", "cx"], width),
        (["y", "y1", "y2", "cy"], height),
    ] {
        for name in names {
            for found in svg.split(&format!(" {name}=\"")).skip(1) {
                let value: f64 = found.split_once('"').unwrap().0.parse().unwrap();
                assert!((0.0..=most).contains(&value), "{name} = {value}");
            }
        }
    }
    // Words of a 13 px font are at most 8 px a character wide.
    for text in svg.split("<text ").skip(1) {
        let (attributes, words) = text.split_once('>').unwrap();
        let words = words.split('<').next().unwrap();
        if let Some(x) = attributes
            .split("x=\"")
            .nth(1)
            .filter(|_| attributes.contains("\"start\""))
        {
            let x: f64 = x.split('"').next().unwrap().parse().unwrap();
            let small = attributes.contains("font-size=\"1");
            let advance = if small && !attributes.contains("18") {
                7.2
            } else {
                7.8
            };
            let end = x + words.chars().count() as f64 * advance;
            assert!(end <= width * 1.1, "{words:?} ends at {end}");
        }
    }
}

fn check(page: &Page) -> Vec<String> {
    let found = elements(page.svg());
    stands_alone(page.svg());
    drawn_within(page.svg());
    let html = page.html();
    let all = elements(&html);
    assert!(all.len() > found.len());
    stands_alone(&html);
    assert!(html.contains(page.svg()));
    found
}

fn count(elements: &[String], name: &str) -> usize {
    elements.iter().filter(|found| *found == name).count()
}

struct Case {
    points: Points,
    labels: Vec<u32>,
    centroids: Vec<f32>,
    counts: Vec<u64>,
}

impl Case {
    /// n points of d values, dealt out to k clusters; the first points are the centroids.
    fn new(n: usize, d: usize, k: usize, value: impl Fn(usize) -> f32) -> Self {
        let values: Vec<f32> = (0..n * d).map(value).collect();
        let centroids = values[..k * d].to_vec();
        let labels: Vec<u32> = (0..n).map(|i| (i % k) as u32).collect();
        let mut counts = vec![0; k];
        labels.iter().for_each(|&label| counts[label as usize] += 1);
        let points = Points::new("p", n, d, Values::F32(values)).unwrap();
        Self {
            points,
            labels,
            centroids,
            counts,
        }
    }

    fn page(&self, curve: &[f64]) -> Page {
        Clusters {
            title: "k-means of <\"a & b\">\u{1b}[31m.npy".to_owned(),
            line: "a line & more".to_owned(),
            facts: vec![("data".to_owned(), "<none> & \"all\"".to_owned())],
            points: &self.points,
            labels: &self.labels,
            centroids: &self.centroids,
            counts: &self.counts,
            radii: vec![1.5; self.counts.len()],
            curve: curve.to_vec(),
            picture: Picture::guess(&self.points),
        }
        .page()
    }
}

/// Values without a pattern that axes could rest on.
fn noise(i: usize) -> f32 {
    ((i * 2_654_435_761) % 1009) as f32 / 100.0 - 5.0
}

#[test]
fn reports_are_well_formed_at_awkward_sizes() {
    for (n, d, k) in [
        (1, 1, 1),
        (2, 1, 2),
        (3, 2, 1),
        (5, 3, 2),
        (50, 7, 33),
        (400, 16, 150),
        (2001, 2, 3),
    ] {
        for value in [
            noise as fn(usize) -> f32,
            |_| 0.0,
            |i| i as f32 * 1e30,
            |i| i as f32 * 1e-30,
        ] {
            let case = Case::new(n, d, k, value);
            for curve in [&[][..], &[0.0], &[5.0, 5.0], &[9e18, 3e18, 1e18]] {
                check(&case.page(curve));
            }
        }
    }
}

#[test]
fn a_report_draws_every_cluster_and_a_sample_of_points() {
    let case = Case::new(5000, 4, 12, noise);
    let page = case.page(&[3.0, 2.0, 1.0]);
    let found = check(&page);
    // 2,000 points, 12 centroids, 3 steps; a bar a cluster, the paper and the frame.
    assert_eq!(count(&found, "circle"), 2000 + 12 + 3);
    assert_eq!(count(&found, "rect"), 12 + 2);
    assert_eq!(count(&found, "image"), 0);
    assert!(page.svg().contains("2000 of 5000 points"));
    let html = page.html();
    assert_eq!(html.matches("<tr><td>").count(), 12 + 1);
    assert!(html.contains("&lt;none&gt; &amp; &quot;all&quot;"));
    assert_eq!(case.page(&[3.0, 2.0, 1.0]).html(), html);
}

#[test]
fn images_are_drawn_as_images() {
    let pixels = |i: usize| (i % 17) as f32;
    let found = check(&Case::new(30, 64, 10, pixels).page(&[1.0]));
    assert_eq!(count(&found, "image"), 10);
    let found = check(&Case::new(300, 16, 150, pixels).page(&[1.0]));
    assert_eq!(count(&found, "image"), 100);

    let guess =
        |d: usize, value: fn(usize) -> f32| Picture::guess(&Case::new(2, d, 1, value).points);
    assert_eq!(
        guess(64, |_| 1.0).map(|p| (p.width, p.height)),
        Some((8, 8))
    );
    assert!(guess(9, |_| 1.0).is_none() && guess(60, |_| 1.0).is_none());
    // Embeddings often have a square number of values, and negative ones.
    assert!(guess(64, |i| i as f32 - 3.0).is_none());

    let size = |text: &str| {
        text.parse::<Picture>()
            .map(|p| (p.width, p.height, p.channels))
            .ok()
    };
    assert_eq!(size("28x14"), Some((28, 14, 1)));
    assert_eq!(size("4X5x3"), Some((4, 5, 3)));
    for bad in ["", "8", "0x8", "8x", "8x8x2", "8x8x3x1", "-8x8", "axb"] {
        assert_eq!(size(bad), None, "{bad}");
    }
}

#[test]
fn an_elbow_marks_the_highest_silhouette() {
    let trials: Vec<Trial> = (1..=20)
        .map(|k| Trial {
            k,
            inertia: 1e6 / k as f64,
            silhouette: (k > 1).then_some(if k == 7 { 0.4 } else { 0.3 }),
        })
        .collect();
    let elbow = |trials| Elbow {
        title: "t".to_owned(),
        line: String::new(),
        facts: Vec::new(),
        trials,
    };
    assert_eq!(elbow(&trials).best(), Some(7));
    let page = elbow(&trials).page();
    let found = check(&page);
    assert_eq!(count(&found, "polyline"), 2);
    assert!(page.svg().contains(">k = 7</text>"));
    assert!(
        page.html()
            .contains("<tr><td>1</td><td>1.000000e6</td><td>–</td></tr>")
    );

    // One cluster alone has no silhouette, and no chart of it.
    let found = check(&elbow(&trials[..1]).page());
    assert_eq!(count(&found, "polyline"), 1);
    assert_eq!(elbow(&trials[..1]).best(), None);
}
