//! A script of sysbench with what its command line says: data that all who run it share.
//!
//! The command line makes a [`Program`]; the groups of a run make what they need of it. Nothing
//! here reads the script.

use std::path::Path;

/// A script with what its command line says.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path as it was named.
    pub path: String,
    /// Command behind the script's name: `prepare`, `run` or the script's own.
    pub command: Option<String>,
    /// The command line, as the script sees it.
    pub argv: Vec<String>,
    /// Options by name with `_`: those that all scripts have, then the script's own.
    pub settings: Vec<(String, Setting)>,
    /// Options of the command line that only a script can know.
    pub given: Vec<(String, Option<String>)>,
    /// Options that are known elsewhere, for a script that declares them, too.
    pub offered: Vec<(String, Option<String>)>,
    /// Distribution of random numbers.
    pub shape: Shape,
    /// First number of `sysbench.rand.unique()`.
    pub unique_from: u32,
}

/// Distribution of `sysbench.rand.default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Each value as often as another.
    Uniform,
    /// A mean of several uniform numbers.
    Gaussian,
    /// A share of the draws falls on a few values.
    #[default]
    Special,
    /// Pareto, by `--rand-pareto-h`.
    Pareto,
    /// Zipf, by `--rand-zipfian-exp`.
    Zipfian,
}

impl Distribution {
    /// The value of `--rand-type`.
    pub fn from_name(name: &str) -> Option<Distribution> {
        Some(match name {
            "uniform" => Distribution::Uniform,
            "gaussian" => Distribution::Gaussian,
            "special" => Distribution::Special,
            "pareto" => Distribution::Pareto,
            "zipfian" => Distribution::Zipfian,
            _ => return None,
        })
    }
}

/// The options of the distributions.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Distribution of `sysbench.rand.default`.
    pub kind: Distribution,
    /// Numbers in a mean (`--rand-spec-iter`).
    pub iterations: u32,
    /// Percent of the values that are special.
    pub special_percent: f64,
    /// Percent of the draws that fall on the special values.
    pub special_share: f64,
    /// Parameter of the Pareto distribution.
    pub pareto_h: f64,
    /// Exponent of the Zipf distribution.
    pub zipfian_exponent: f64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            kind: Distribution::Special,
            iterations: 12,
            special_percent: 1.0,
            special_share: 75.0,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// No value: the script's `nil`.
    None,
    /// A switch.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Texts that were separated by commas.
    List(Vec<String>),
}

/// A size with K, M, G or T, each 1024 of the one before.
pub fn size(text: &str) -> Option<u64> {
    let units = ["K", "M", "G", "T"];
    let upper = text.to_ascii_uppercase();
    let found = (1u32..).zip(units).find(|(_, unit)| upper.ends_with(unit));
    let (power, digits) = match found {
        Some((power, _)) => (power, &text[..text.len() - 1]),
        None => (0, text),
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(1024u64.checked_pow(power)?)
}

impl Program {
    /// The name without folders and `.lua`.
    pub fn name(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".lua").unwrap_or(name)
    }

    /// Path on which modules are looked for: beside the script, where the user says, and where
    /// sysbench has its own.
    pub fn package_path(&self) -> String {
        let folder = Path::new(&self.path).parent().map(Path::to_string_lossy);
        let folder = match folder.as_deref() {
            None | Some("") => ".",
            Some(folder) => folder,
        };
        let usual = format!(
            "{folder}/?.lua;./?.lua;./?/init.lua;/usr/local/share/lua/5.1/?.lua;\
             /usr/share/lua/5.1/?.lua;/usr/local/share/sysbench/?.lua;/usr/share/sysbench/?.lua"
        );
        match std::env::var("LUA_PATH") {
            Ok(path) if path.contains(";;") => path.replacen(";;", &format!(";{usual};"), 1),
            Ok(path) if !path.is_empty() => path,
            _ => usual,
        }
    }
}
