//! Packages, as Cargo.toml lists what is in them: documents whose links lead somewhere, a
//! configuration that the service may read and others may not, and the service's unit.

use crate::world::*;
use std::collections::BTreeMap;
use std::path::Component;
use std::process::Command;
use testkit::onramp::loopback;

/// Folder of the documents.
const DOCUMENTS: &str = "usr/share/doc/onramp";

/// A file of a package: its source, its place, its mode.
type Asset = (String, String, String);

/// The files of both packages.
fn packages() -> [Vec<Asset>; 2] {
    let text = std::fs::read_to_string("Cargo.toml").unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let metadata = &manifest["package"]["metadata"];
    let of = |value: &toml::Value| value.as_str().unwrap().trim_start_matches('/').to_owned();
    let deb = metadata["deb"]["assets"].as_array().unwrap().iter();
    let rpm = metadata["generate-rpm"]["assets"]
        .as_array()
        .unwrap()
        .iter();
    [
        deb.map(|asset| (of(&asset[0]), of(&asset[1]), of(&asset[2])))
            .collect(),
        rpm.map(|asset| (of(&asset["source"]), of(&asset["dest"]), of(&asset["mode"])))
            .collect(),
    ]
}

/// Documents by their place in a package.
fn documents(assets: &[Asset]) -> BTreeMap<PathBuf, PathBuf> {
    let mut documents = BTreeMap::new();
    for (source, place, _) in assets.iter().filter(|asset| asset.1.starts_with(DOCUMENTS)) {
        let (folder, name) = source.rsplit_once('/').unwrap_or((".", source));
        let (before, behind) = name.split_once('*').unwrap_or((name, ""));
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            let file = entry.file_name().unwrap().to_str().unwrap();
            if entry.is_file() && file.starts_with(before) && file.ends_with(behind) {
                let is_folder = place.ends_with('/');
                let place = if is_folder {
                    Path::new(place).join(file)
                } else {
                    place.into()
                };
                documents.insert(place, entry);
            }
        }
    }
    documents
}

/// The targets of a document's relative links.
fn links(text: &str) -> Vec<&str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// A place without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

#[test]
fn each_link_of_a_packaged_document_leads_to_one() {
    for assets in packages() {
        let documents = documents(&assets);
        assert!(documents.len() > 50, "{documents:?}");
        for (place, source) in &documents {
            let text = std::fs::read_to_string(source).unwrap_or_default();
            let is_page = place.extension().is_some_and(|extension| extension == "md");
            for target in links(&text).into_iter().filter(|_| is_page) {
                let to = plain(&place.parent().unwrap().join(target));
                let is_there = documents.keys().any(|document| document.starts_with(&to));
                let source = source.display();
                assert!(is_there, "{source}: {target} is not in the package");
            }
        }
        for file in ["onramp.service", "onramp.socket", "pool.toml"] {
            let text = std::fs::read_to_string(format!("packaging/{file}")).unwrap();
            for rest in text.split(DOCUMENTS).skip(1) {
                let mut names = rest.split(|c: char| c.is_whitespace() || c == ')');
                let named = format!("{DOCUMENTS}{}", names.next().unwrap());
                assert!(documents.contains_key(Path::new(&named)), "{file}: {named}");
            }
        }
    }
}

#[test]
fn the_unit_restarts_a_pool_unless_its_file_is_wrong() {
    const UNIT: &str = include_str!("../../packaging/onramp.service");
    let Some(real) = pooled(server) else { return };
    let value = |key: &str| {
        let mut lines = UNIT.lines();
        let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {key}"))
    };
    let prevented: Vec<i32> = (value("RestartPreventExitStatus").split(' '))
        .map(|status| status.parse().unwrap())
        .collect();
    assert_eq!(value("Restart"), "on-failure");
    // Five starts in ten seconds are systemd's limit (DefaultStartLimitBurst).
    assert!(value("RestartSec").parse::<u32>().unwrap() * 5 > 10);
    let ends = |name: &str, text: &str| {
        let file = config_file(real, name, text);
        let ran = onramp(&format!("pool --config {}", file.display()));
        ran.status.code().unwrap()
    };
    let listen = "listen = [\"127.0.0.1:0\"]\n";
    let wrong = config(&real.address(), &format!("{listen}clients_maximum = 5"));
    assert!(prevented.contains(&ends("unit-wrong.toml", &wrong)));
    let refused = config(&real.address(), listen)
        .replace("\"app\"\npassword = \"app\"", "\"app\"\npassword = \"no\"");
    assert!(!prevented.contains(&ends("unit-refused.toml", &refused)));
    // An absent server is waited for.
    let away = config(&loopback(1), listen);
    let file = config_file(real, "unit-away.toml", &away);
    let arguments = ["--config", file.to_str().unwrap()];
    Pool::start_waiting(binary(), &arguments, "waiting for the server").unwrap();
    // And the unit is one.
    let unit = real.folder().join("onramp.service");
    let text = UNIT.replace("/usr/bin/onramp", binary().to_str().unwrap());
    std::fs::write(&unit, text).unwrap();
    let mut verify = Command::new("systemd-analyze");
    match verify.args(["verify", "--man=no"]).arg(&unit).output() {
        Ok(said) => assert!(said.status.success() && said.stderr.is_empty(), "{said:?}"),
        Err(why) => skip(&format!("systemd-analyze: {why}")),
    }
}

#[test]
fn both_packages_have_the_same_files_and_nobody_else_reads_the_configuration() {
    let [deb, rpm] = packages();
    assert_eq!(documents(&deb), documents(&rpm));
    for assets in [deb, rpm] {
        let found = |place: &str| {
            assets
                .iter()
                .find(|asset| asset.1.starts_with(place))
                .unwrap()
        };
        assert_eq!(found("etc/onramp/pool.toml").2, "640");
        // Without the names of its functions: scripts/package.sh strips it.
        assert_eq!(found("usr/bin/").0, "target/package/onramp");
    }
}
