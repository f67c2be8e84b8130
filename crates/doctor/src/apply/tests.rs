//! Changes on a tree that looks like the kernel's.
use super::*;
use crate::finding::Demand;
use crate::finding::Severity;
use crate::question::Question;
use std::path::PathBuf;

/// A tree with one setting, gone when the test ends.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let root = std::env::temp_dir().join(format!("doctor-{}-apply-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("proc/sys/vm")).unwrap();
        fs::write(root.join("proc/sys/vm/max_map_count"), "65530\n").unwrap();
        Tree(root)
    }

    fn value(&self) -> String {
        fs::read_to_string(self.0.join("proc/sys/vm/max_map_count")).unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn finding(setting: Setting, needed: u64) -> Finding {
    let question = Question {
        connections: Some(needed),
        ..Question::default()
    };
    let demands = [Some(Demand::new(0, 1)); 3];
    Finding::of(&question, "some", Severity::Wall, Some(65_530), demands).settings(vec![setting])
}

fn maps(value: u64) -> Finding {
    finding(Setting::Sysctl("vm.max_map_count", vec![value]), value)
}

#[test]
fn changes_are_noted_made_and_taken_back() {
    let tree = Tree::new("back");
    let (files, record) = (Files::below(&tree.0), tree.0.join("undo.json"));
    let hands = Hands {
        files: &files,
        target: None,
    };
    let facts = Facts::default();
    let (changes, later) = plan(&[maps(210_000)], &facts, &files);
    assert_eq!((changes.len(), later.len()), (1, 0));
    assert_eq!(
        (&*changes[0].before, &*changes[0].after),
        ("65530", "210000")
    );
    let mut out = Vec::new();
    assert_eq!(make(&changes, &hands, &record, &mut out), Ok(0));
    assert_eq!(tree.value(), "210000");
    // A second time: the record keeps what was first.
    let (more, _) = plan(&[maps(400_000)], &facts, &files);
    assert_eq!(make(&more, &hands, &record, &mut out), Ok(0));
    assert_eq!(tree.value(), "400000");
    let noted = read_record(&record).unwrap().unwrap();
    assert_eq!(noted.len(), 1);
    assert_eq!((&*noted[0].before, &*noted[0].after), ("65530", "400000"));
    assert_eq!(undo(&noted, &hands, &record, &mut out), Ok(0));
    assert_eq!(tree.value(), "65530");
    assert_eq!(read_record(&record), Ok(None), "the record is gone");
    let said = String::from_utf8(out).unwrap();
    assert!(said.contains("set vm.max_map_count to 210000"), "{said}");
    assert!(
        said.contains("set vm.max_map_count back to 65530"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_set_back_stays_in_the_record() {
    let tree = Tree::new("left");
    let (files, record) = (Files::below(&tree.0), tree.0.join("undo.json"));
    let hands = Hands {
        files: &files,
        target: None,
    };
    let (mut changes, _) = plan(&[maps(210_000)], &Facts::default(), &files);
    changes.push(Change {
        object: Object::Global {
            name: "max_connections".into(),
        },
        before: "151".into(),
        after: "1000".into(),
    });
    let mut out = Vec::new();
    assert_eq!(
        make(&changes, &hands, &record, &mut out),
        Ok(1),
        "no server is named"
    );
    let noted = read_record(&record).unwrap().unwrap();
    assert_eq!(noted, changes[..1], "what was not set needs no way back");
    assert_eq!(undo(&changes, &hands, &record, &mut out), Ok(1));
    let left = read_record(&record).unwrap().unwrap();
    assert_eq!(left, changes[1..]);
    assert_eq!(tree.value(), "65530");
}

#[test]
fn a_change_that_fails_leaves_the_record_as_it_was() {
    let tree = Tree::new("fails");
    let (files, record) = (Files::below(&tree.0), tree.0.join("undo.json"));
    let hands = Hands {
        files: &files,
        target: None,
    };
    let global = |before: &str, after: &str| Change {
        object: Object::Global {
            name: "max_connections".into(),
        },
        before: before.into(),
        after: after.into(),
    };
    let mut out = Vec::new();
    let alone = [global("151", "1000")];
    assert_eq!(make(&alone, &hands, &record, &mut out), Ok(1));
    assert_eq!(read_record(&record), Ok(None), "nothing was set");
    let said = String::from_utf8(out.clone()).unwrap();
    assert!(!said.contains("--undo"), "{said}");
    // One that was set earlier is still to be set back.
    fs::write(&record, serde_json::to_string(&alone).unwrap()).unwrap();
    assert_eq!(
        make(&[global("1000", "5000")], &hands, &record, &mut out),
        Ok(1)
    );
    assert_eq!(read_record(&record), Ok(Some(alone.to_vec())));
}

#[test]
fn nothing_is_changed_without_a_record() {
    let tree = Tree::new("record");
    let files = Files::below(&tree.0);
    let hands = Hands {
        files: &files,
        target: None,
    };
    let (changes, _) = plan(&[maps(210_000)], &Facts::default(), &files);
    let record = tree.0.join("no/such/folder/undo.json");
    let error = make(&changes, &hands, &record, &mut Vec::new()).unwrap_err();
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(tree.value(), "65530\n");
    fs::write(tree.0.join("undo.json"), "{").unwrap();
    assert!(make(&changes, &hands, &tree.0.join("undo.json"), &mut Vec::new()).is_err());
    assert_eq!(tree.value(), "65530\n");
}

#[test]
fn changes_are_shown_and_only_a_yes_agrees() {
    let tree = Tree::new("agree");
    let files = Files::below(&tree.0);
    let file = finding(Setting::File("back_log", "5000".into()), 70_000);
    let (changes, later) = plan(&[maps(210_000), file], &Facts::default(), &files);
    for (answer, agreed) in [("y\n", true), ("yes\n", true), ("n\n", false), ("", false)] {
        let mut out = Vec::new();
        let given = agree(&changes, &later, false, &mut answer.as_bytes(), &mut out).unwrap();
        assert_eq!(given, agreed, "{answer}");
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.contains("65530 -> 210000"), "{shown}");
        assert!(shown.contains("left to you: back_log = 5000"), "{shown}");
    }
    assert!(!agree(&[], &[], true, &mut "".as_bytes(), &mut Vec::new()).unwrap());
}

#[test]
fn the_limits_of_a_running_process_are_changed_and_set_back() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let files = Files::of_kernel();
    let facts = Facts::read(&files, Some(u64::from(child.id())));
    let process = facts.server_process.clone().unwrap();
    // A lower soft limit is anybody's to set.
    let soft = process.nofile_soft.unwrap() - 1;
    let hard = process.nofile_hard.unwrap();
    let value = format!("{soft} {}", limit_words(hard));
    set_limit(process.pid, "nofile", &value).unwrap();
    let now = Facts::read(&files, Some(process.pid))
        .server_process
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((now.nofile_soft, now.nofile_hard), (Some(soft), Some(hard)));
    assert!(set_limit(process.pid, "nofile", "many").is_err());
}
