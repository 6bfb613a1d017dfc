//! Checks that `firmware/README.md` shows the files of `firmware/template` as they are.

const FILES: [&str; 3] = [
    include_str!("../../template/Cargo.toml"),
    include_str!("../../template/build.rs"),
    include_str!("../../template/src/main.rs"),
];

#[test]
fn the_readme_shows_the_template_s_lines() {
    let readme = include_str!("../../README.md");
    let (_, section) = readme
        .split_once("\n## A network or model of your own\n")
        .unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    // Every second part lies between fences.
    let blocks = section.split("```").skip(1).step_by(2);
    let shown = blocks.filter_map(|block| block.split_once('\n').filter(|(kind, _)| *kind != "sh"));
    let shown: Vec<&str> = shown.map(|(_, lines)| lines).collect();
    assert_eq!(shown.len(), 4);
    for lines in shown {
        assert!(FILES.iter().any(|file| file.contains(lines)), "{lines}");
    }
}
