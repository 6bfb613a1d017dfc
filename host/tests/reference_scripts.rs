//! Scripts of references run as each would in a Python of its own, though they share one.

use std::fs;
use std::panic::catch_unwind;

use crate::support;

#[test]
fn a_script_finds_all_as_new_and_its_failure_is_told() {
    let Some(python) = support::python_with(&["numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let beside = "import numpy, os, sys\nimport beside\n\
                  print(sys.argv[1:], repr(sys.stdin.read()), hasattr(numpy, 'left'), beside.HERE)\n\
                  numpy.left = 1\nos.chdir('/')";
    script("beside.py", "HERE = 1");
    let beside = script("script.py", beside);
    for _ in 0..2 {
        let told = support::run(&python, &beside, ["a b", "\"c\""]);
        assert_eq!(told.trim(), r#"['a b', '"c"'] '' False 1"#);
    }
    let text = "import sys\nprint('so far')\nprint('and why', file=sys.stderr)\nsys.exit(3)";
    let failing = script("failing.py", text);
    let failure = catch_unwind(|| support::run(&python, &failing, [""; 0])).unwrap_err();
    let failure = failure.downcast::<String>().unwrap();
    assert!(
        failure.ends_with("failed (3):\nso far\nand why\n"),
        "{failure}"
    );
    // Whatever one did, the next is run.
    support::run(&python, &beside, [""; 0]);
}
