//! The README's quick start in a cluster: its commands as they stand there, on a real control plane, say what it says
//! that they say.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::{self, Cluster};
use caipe_tests::programs::workspace;
use regex_lite::Regex;

/// A command and what it prints.
#[derive(Debug)]
struct Step {
    command: String,
    output: String,
}

/// The steps of the README: the blocks of the section that shows them.
fn steps() -> Result<Vec<Step>> {
    let text = std::fs::read_to_string(workspace().join("README.md"))?;
    let (_, section) =
        text.split_once("<!-- quick start on a control plane -->").context("no quick start")?;
    let (section, _) = section.split_once("\n## ").context("no end")?;
    let mut steps: Vec<Step> = Vec::new();
    for block in section.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), output: String::new() });
            } else if let Some(step) = steps.last_mut() {
                step.output.extend([line, "\n"]);
            }
        }
    }
    Ok(steps)
}

/// A text without what differs from one run to the next: ages, names of pods, times, addresses, widths of columns.
fn plain(text: &str) -> Vec<String> {
    let rules = [
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) .* 20[0-9]{2}", "TIME"),
        (r"[0-9a-f]{64}", "HASH"),
        (r"-[0-9a-f]{8,10}-[a-z0-9]{5}\b", "-POD"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\b10\.[0-9]+\.[0-9]+\.[0-9]+\b", "ADDRESS"),
        (r"\b([0-9]+m)?[0-9]+s\b", "AGE"),
        (r"Resource Version: +[0-9]+", "Resource Version: N"),
        (r"[ \t]+", " "),
    ];
    let mut text = text.to_owned();
    for (pattern, with) in rules {
        if let Ok(pattern) = Regex::new(pattern) {
            text = pattern.replace_all(&text, with).into_owned();
        }
    }
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Whether the lines are those expected; an expected `...` stands for any number of lines.
fn fits(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=found.len()).any(|at| found.get(at..).is_some_and(|found| fits(rest, found)))
        }
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, found)| first == line && fits(rest, found))
        }
    }
}

fn run(cluster: &Cluster, command: &str) -> Result<String> {
    let mut shell = Command::new("sh");
    cluster.administer(&mut shell);
    let output = shell.args(["-c", command]).current_dir(workspace()).output()?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{command}: {text}");
    Ok(text)
}

#[test]
fn the_quick_start_in_a_cluster_is_as_the_readme_says() -> Result<()> {
    let steps = steps()?;
    assert!(steps.len() > 5, "{steps:?}");
    cluster::alone(async |cluster| {
        for step in &steps {
            let found = run(cluster, &step.command)?;
            println!("$ {}\n{found}", step.command);
            let (expected, found) = (plain(&step.output), plain(&found));
            assert!(fits(&expected, &found), "{}\nexpected {expected:#?}\nfound {found:#?}", step.command);
        }
        Ok(())
    })
}

#[test]
fn dots_stand_for_any_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(fits(&lines("a\n..."), &lines("a")));
    assert!(!fits(&lines("a\n...\nd"), &lines("a\nb\nc")));
    assert!(!fits(&lines("a"), &lines("a\nb")));
}
