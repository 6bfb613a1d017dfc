//! `tercet chat`.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;
use tercet_host::language::tiny::CHAT_TEMPLATE;

use super::support::{Folder, Run, fields};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.languages();
    folder
}

/// A short talk, warm enough that draws matter.
fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = ["chat", "chat.gguf", "-n", "16", "--temp", "0.9"];
    [&words, more].concat()
}

/// Runs a command that is told such lines.
fn say(folder: &Folder, arguments: &[&str], lines: &str) -> Run {
    let mut command = folder.command(arguments);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that refuses does not read.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The answers of a talk that ends well.
fn answers(folder: &Folder, arguments: &[&str], lines: &str) -> Vec<Value> {
    let run = say(folder, &[arguments, &["--json"]].concat(), lines);
    assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
    assert_eq!(run.err, "", "{arguments:?}");
    let lines = run.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What is the same however the cache is filled.
fn lasting(answer: &Value) -> Vec<Value> {
    let names = ["text", "tokens", "end", "digest", "prompt_tokens"];
    names.map(|name| answer[name].clone()).to_vec()
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.path(name)).unwrap()).unwrap()
}

#[test]
fn a_line_is_a_message_and_its_answer_goes_on_with_the_cache() {
    let folder = folder();
    // Lines that are empty ask nothing.
    let found = answers(
        &folder,
        &with(&["--system", "be brief"]),
        "the one\r\n\n  \nand the other\n",
    );
    assert_eq!(found.len(), 2);
    assert_eq!(
        fields(&found[0]),
        [
            "accepted_tokens",
            "cached_tokens",
            "decode_seconds",
            "decode_tokens_per_second",
            "digest",
            "drafted_tokens",
            "dropped_messages",
            "end",
            "prompt_seconds",
            "prompt_tokens",
            "prompt_tokens_per_second",
            "text",
            "tokens",
        ]
    );
    assert_eq!(
        (&found[0]["cached_tokens"], &found[0]["dropped_messages"]),
        (&0.into(), &0.into())
    );
    // The first prompt at least is in the second.
    assert!(found[1]["cached_tokens"].as_u64() >= found[0]["prompt_tokens"].as_u64());
    // The same texts without JSON, each behind the other, and one line of what it took.
    let run = say(
        &folder,
        &with(&["--system", "be brief"]),
        "the one\nand the other",
    );
    let texts = found.iter().map(|answer| answer["text"].as_str().unwrap());
    let texts: Vec<String> = texts.map(|text| format!("{text}\n")).collect();
    assert_eq!((run.code, run.out), (Some(0), texts.concat()));
    assert!(run.err.starts_with("2 answers: "), "{}", run.err);
    // One message alone is the first.
    let one = folder.ok(&with(&["--system", "be brief", "-p", "the one", "--json"]));
    assert_eq!(
        lasting(&serde_json::from_str(&one).unwrap()),
        lasting(&found[0])
    );
    assert_eq!(say(&folder, &with(&[]), "").out, "");
}

#[test]
fn neither_threads_nor_engines_show_in_a_talk() {
    let folder = folder();
    let lines = "the one\nand the other\n";
    let of = |more: &[&str]| -> Vec<Vec<Value>> {
        answers(&folder, &with(more), lines)
            .iter()
            .map(lasting)
            .collect()
    };
    let expected = of(&[]);
    let edge = ["--profile", "edge", "--edge-memory", "10000000"];
    for more in [&["--threads", "1"][..], &["--backend", "scalar"], &edge] {
        assert_eq!(of(more), expected, "{more:?}");
    }
    assert_ne!(of(&["--seed", "1"]), expected);
    assert_ne!(of(&["--kv", "fp8"]), expected);
    assert_ne!(of(&["--window", "5"]), expected);
}

#[test]
fn a_session_goes_on_as_if_it_had_not_ended_with_its_cache_and_without() {
    let folder = folder();
    let (one, two) = ("the one\n", "and the other\n");
    let whole = answers(&folder, &with(&["--kv", "int8"]), &format!("{one}{two}"));
    let save = ["--save", "talk.json", "--with-cache"];
    let first = answers(
        &folder,
        &with(&[&["--kv", "int8"][..], &save].concat()),
        one,
    );
    assert_eq!(lasting(&first[0]), lasting(&whole[0]));
    let before = fs::read(folder.path("talk.json")).unwrap();
    let session = json(&folder, "talk.json");
    assert_eq!(session["messages"][1]["content"], whole[0]["text"]);
    // The options are the session's.
    let resume = ["chat", "chat.gguf", "--resume", "talk.json"];
    let plain = answers(&folder, &resume, two);
    let cached = answers(&folder, &[&resume[..], &["--with-cache"]].concat(), two);
    for found in [&plain, &cached] {
        assert_eq!(lasting(&found[0]), lasting(&whole[1]));
    }
    assert_eq!(plain[0]["cached_tokens"], 0);
    assert_eq!(cached[0]["cached_tokens"], whole[1]["cached_tokens"]);
    // What is not saved to stays as it was.
    assert!(fs::read(folder.path("talk.json")).unwrap() == before);
    // Options that are given go before.
    let other = answers(
        &folder,
        &[&resume[..], &["--seed", "8", "-n", "5"]].concat(),
        two,
    );
    assert_eq!(other[0]["tokens"].as_array().unwrap().len(), 5);
    assert_ne!(other[0]["digest"], plain[0]["digest"]);
    // It is saved where it was resumed from, and tells of a cache that is not there.
    fs::remove_file(folder.path("talk.json.cache")).unwrap();
    let run = say(&folder, &[&resume[..], &save].concat(), two);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.err.starts_with("there is no cache next to talk.json"),
        "{}",
        run.err
    );
    assert_eq!(
        json(&folder, "talk.json")["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert!(folder.path("talk.json.cache").exists());
}

#[test]
fn files_of_others_are_not_overwritten() {
    let folder = folder();
    fs::write(folder.path("mine.json"), "precious").unwrap();
    fs::write(folder.path("other.json.cache"), "precious").unwrap();
    fn talk<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&with(&["-p", "a"])[..], more].concat()
    }
    folder.ok(&talk(&["--save", "talk.json", "--json"]));
    for (more, name) in [
        (&["--save", "mine.json"][..], "mine.json"),
        (&["--save", "talk.json"], "talk.json"),
        (
            &["--resume", "talk.json", "--save", "mine.json"],
            "mine.json",
        ),
        (
            &["--save", "other.json", "--with-cache"],
            "other.json.cache",
        ),
    ] {
        let line = folder.fails(&talk(more));
        assert!(
            line.starts_with(&format!("error: {name}: exists already")),
            "{line}"
        );
    }
    folder.ok(&talk(&["--save", "mine.json", "--force", "--json"]));
    assert_eq!(json(&folder, "mine.json")["tercet_chat"], 1);
}

#[test]
fn sessions_and_caches_that_are_not_this_model_s_are_refused_by_name() {
    let folder = folder();
    let save = ["-p", "a", "--json", "--save", "talk.json", "--with-cache"];
    folder.ok(&with(&save));
    let text = fs::read_to_string(folder.path("talk.json")).unwrap();
    let resume = ["-p", "b", "--resume", "bad.json", "--with-cache"];
    let refused = |text: &str, said: &str| {
        fs::write(folder.path("bad.json"), text).unwrap();
        let line = folder.fails(&with(&resume));
        assert!(
            line.starts_with("error: bad.json") && line.contains(said),
            "{line}"
        );
    };
    refused("", "session");
    refused(&text[..text.len() - 3], "session");
    refused(
        &text.replace("\"kv\": null", "\"kv\": \"int4\""),
        "`int4` is not a type of cache",
    );
    refused(&text.replace("\"window\": null", "\"window\": 0"), "window");
    refused(&text.replace("\"temp\": 0.9", "\"temp\": \"hot\""), "hot");
    let digest = json(&folder, "talk.json")["model"]["digest"].clone();
    refused(
        &text.replace(digest.as_str().unwrap(), "00"),
        "it is of another model",
    );
    // Numbers that the command line would not take.
    fs::write(
        folder.path("bad.json"),
        text.replace("\"temp\": 0.9", "\"temp\": -1"),
    )
    .unwrap();
    let line = folder.fails(&["chat", "chat.gguf", "-p", "b", "--resume", "bad.json"]);
    assert!(line.contains("temperature"), "{line}");
    // The cache beside.
    let mut cache = fs::read(folder.path("talk.json.cache")).unwrap();
    let last = cache.len() - 1;
    cache[last] ^= 1;
    fs::write(folder.path("bad.json.cache"), cache).unwrap();
    refused(&text, "bad.json.cache: bad cache file");
    fs::copy(
        folder.path("talk.json.cache"),
        folder.path("bad.json.cache"),
    )
    .unwrap();
    let line = folder.fails(&with(&[&resume[..], &["--kv", "fp8"]].concat()));
    assert!(
        line.starts_with("error: bad.json.cache: its cache_type is"),
        "{line}"
    );
}

#[test]
fn the_oldest_messages_give_way_and_one_that_is_too_long_loses_nothing() {
    let folder = folder();
    let talk = with(&["--context", "150", "--save", "talk.json", "--system", "b"]);
    let lines = "one one one one one one\n".repeat(6);
    let run = say(&folder, &talk, &lines);
    assert_eq!(run.code, Some(0), "{run:?}");
    let told =
        "the context of 150 tokens is full: the 2 oldest messages are left out from now on\n";
    assert!(run.err.contains(told), "{}", run.err);
    let session = json(&folder, "talk.json");
    assert_eq!(session["messages"].as_array().unwrap().len(), 13);
    assert!(session["left_out"].as_u64().unwrap() >= 2);
    let long = "a ".repeat(200);
    let resume = [
        "chat",
        "chat.gguf",
        "--resume",
        "talk.json",
        "--save",
        "talk.json",
    ];
    let line = folder.fails(&[&resume[..], &["-p", &long]].concat());
    assert!(
        line.starts_with("error: chat.gguf: the message needs "),
        "{line}"
    );
    // A window has no end.
    let window = ["--window", "64", "--json"];
    folder.ok(&with(&[&["-p", &"a ".repeat(800)][..], &window].concat()));
}

#[test]
fn a_file_without_a_template_takes_one_from_elsewhere() {
    let folder = folder();
    let talk = ["chat", "llama.gguf", "-p", "the", "-n", "8", "--json"];
    let line = folder.fails(&talk);
    assert!(
        line.contains("llama.gguf: ") && line.contains("tokenizer.chat_template"),
        "{line}"
    );
    assert!(line.contains("--template"), "{line}");
    fs::write(folder.path("chat.jinja"), CHAT_TEMPLATE).unwrap();
    let own = [
        &talk[..],
        &["--template", "chat.jinja", "--save", "talk.json"],
    ]
    .concat();
    let answer = folder.json(&own);
    assert_eq!(answer["tokens"].as_array().unwrap().len(), 8);
    // A session has it.
    fs::remove_file(folder.path("chat.jinja")).unwrap();
    let resumed = folder.json(&[&talk[..], &["--resume", "talk.json"]].concat());
    assert!(resumed["prompt_tokens"].as_u64() > answer["prompt_tokens"].as_u64());
    // The file's own and the same one from elsewhere are the same.
    fs::write(folder.path("chat.jinja"), CHAT_TEMPLATE).unwrap();
    let of = |more: &[&str]| lasting(&folder.json(&with(&[&["-p", "a", "--json"], more].concat())));
    assert_eq!(of(&["--template", "chat.jinja"]), of(&[]));
    let bad = |source: &str, said: &str| {
        fs::write(folder.path("bad.jinja"), source).unwrap();
        let line = folder.fails(&with(&["-p", "a", "--template", "bad.jinja"]));
        assert!(
            line.contains("bad.jinja: the chat template") && line.contains(said),
            "{line}"
        );
    };
    bad("{% if %}", "line 1");
    bad(
        "{{ raise_exception('only on Sundays') }}",
        "only on Sundays",
    );
    let line = folder.fails(&with(&["-p", "a", "--template", "nowhere.jinja"]));
    assert!(line.contains("nowhere.jinja: cannot read"), "{line}");
}

#[test]
fn wrong_usage_of_a_talk_ends_in_two() {
    let folder = folder();
    for (more, named) in [
        (&["--temp", "-1"][..], "--temp"),
        (&["-n", "0"], "at least one token"),
        (&["--context", "641"], "641"),
        (&["--context", "0"], "--context"),
        (&["--with-cache"], "--with-cache"),
        (&["--force"], "--save"),
        (&["--resume", "a", "--system", "b"], "--system"),
        (&["--sinks", "2"], "--window"),
    ] {
        let run = folder.run(&[&["chat", "chat.gguf", "-p", "a"][..], more].concat());
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{more:?}: {run:?}"
        );
        assert!(run.err.contains(named), "{more:?}: {}", run.err);
    }
    let run = say(&folder, &with(&[]), "\u{e9}\n");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_an_answer_and_what_came_of_it_stays() {
    use super::signals::interruptible;

    let folder = folder();
    // Without an end: a ring goes on and on, greedily.
    let words = ["chat", "chat.gguf", "--window", "32", "-n", "100000000"];
    let mut command = folder.command(&[&words[..], &["--save", "talk.json"]].concat());
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = interruptible(&mut command).spawn().unwrap();
    let send = |child: &std::process::Child| {
        let id = child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-INT", &id])
            .status();
        assert!(sent.unwrap().success());
    };
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut text = Vec::new();
    for _ in 0..2 {
        stdin.write_all(b"the one\n").unwrap();
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
        send(&child);
        while byte != *b"\n" {
            stdout.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
    }
    // It is kept behind the answer's end.
    let said = |session: &Value| session["messages"].as_array().map_or(0, Vec::len);
    let started = std::time::Instant::now();
    while said(&json(&folder, "talk.json")) < 4 {
        assert!(started.elapsed().as_secs() < 60, "nothing was kept");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Between answers it ends the command.
    send(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let session = json(&folder, "talk.json");
    let said = |index: usize| session["messages"][index]["content"].as_str().unwrap();
    assert_eq!(text, format!("{}\n{}\n", said(1), said(3)).as_bytes());
}
