//! The table of the tool servers in `docs/agents.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use caipe_crds::catalogue::{Entry, Server};
use caipe_supervisor::mcp::ToolsView;

use crate::tokens;

/// The comments around the generated part of the page.
const MARKS: [&str; 2] = ["<!-- rows of the catalogue -->\n", "<!-- end of the rows -->\n"];
const HEAD: &str =
    "| agent | server | licence | tools | tokens | memory request | resident (MB) | start (s) | tried |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
";
const HEAVIEST: usize = 5;

/// The rows, and the programs with their memory.
#[derive(Default)]
pub(crate) struct Table {
    rows: String,
    programs: Vec<(u64, String)>,
}

impl Table {
    /// Adds the servers of an agent. Their processes have `mark` in their environment.
    pub(crate) fn add(&mut self, entry: &Entry, view: &ToolsView, took: Duration, mark: &str) {
        let memory = Memory::of(mark);
        let (agent, count, size) = (&entry.name, view.tools.len(), tokens(view));
        let seconds = format!("{:.1}", took.as_secs_f64());
        for Server { source, licence, tried, stdio, .. } in &entry.servers {
            let Some(stdio) = stdio else {
                let row = format!(
                    "| {agent} | [its own]({source}) | {licence} | {count} | | | | | stand-in only |"
                );
                self.rows.extend([&row, "\n"]);
                continue;
            };
            let (package, request) = (&stdio.package, &stdio.memory);
            let megabytes = memory.megabytes(&stdio.program);
            let row = format!(
                "| {agent} | [{} {}]({source}) | {licence} | {count} | {size} | {request} | {megabytes} | {seconds} | {tried} |",
                package.name, package.version
            );
            self.rows.extend([&row, "\n"]);
            self.programs
                .push((megabytes, format!("{agent}, {} ({megabytes} MB, {seconds} s)", stdio.program)));
        }
    }

    /// Writes the table into the page if a person asks for it: its figures depend on the machine.
    pub(crate) fn write(mut self) {
        if std::env::var_os("CAIPE_WRITE_TABLE").is_none() {
            return;
        }
        self.programs.sort_by(|a, b| b.cmp(a));
        let heaviest: Vec<_> = self.programs.iter().take(HEAVIEST).map(|it| it.1.as_str()).collect();
        let total: u64 = self.programs.iter().map(|it| it.0).sum();
        let cores = std::thread::available_parallelism().unwrap();
        let today = jiff::Zoned::now().date();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap();
        let load = load.split(' ').next().unwrap();
        let note = format!(
            "Measured on {today} with {cores} cores and a load of {load}, one agent after the other, by\n\
             `CAIPE_WRITE_TABLE=1 cargo test -p caipe-supervisor --test catalogue`. The {HEAVIEST} programs with the most\n\
             memory: {}.\nAll {} together: {total} MB.",
            heaviest.join("; "),
            self.programs.len()
        );
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
        let text = std::fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(MARKS[0]).unwrap();
        let (_, after) = rest.split_once(MARKS[1]).unwrap();
        let [begin, end] = MARKS;
        std::fs::write(page, format!("{before}{begin}{HEAD}{}\n{note}\n\n{end}{after}", self.rows)).unwrap();
    }
}

/// The processes of one agent's servers.
struct Memory(BTreeMap<String, Process>);

struct Process {
    parent: String,
    command: String,
    resident_kilobytes: u64,
}

impl Memory {
    fn of(mark: &str) -> Self {
        let pids =
            std::fs::read_dir("/proc").unwrap().filter_map(|it| it.unwrap().file_name().into_string().ok());
        Self(pids.filter_map(|pid| Some((pid.clone(), Process::read(&pid, mark)?))).collect())
    }

    /// The resident memory of a program with all its children.
    fn megabytes(&self, program: &str) -> u64 {
        let is_root = |pid: &&String| self.0[*pid].command.contains(program);
        let mut tree: BTreeSet<&String> = self.0.keys().filter(is_root).collect();
        loop {
            let has_parent = |pid: &&String| tree.contains(&self.0[*pid].parent) && !tree.contains(pid);
            let children: Vec<_> = self.0.keys().filter(has_parent).collect();
            if children.is_empty() {
                break;
            }
            tree.extend(children);
        }
        assert!(!tree.is_empty(), "no process of {program}");
        tree.iter().map(|pid| self.0[*pid].resident_kilobytes).sum::<u64>() / 1024
    }
}

impl Process {
    /// A process that has `mark` in its environment.
    fn read(pid: &str, mark: &str) -> Option<Self> {
        let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
        let text = |name: &str| file(name).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
        text("environ").filter(|environment| environment.contains(mark))?;
        let status = text("status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()).map(str::to_owned)
        };
        let resident_kilobytes = field("VmRSS")?.parse().ok()?;
        Some(Self { parent: field("PPid")?, command: text("cmdline")?, resident_kilobytes })
    }
}
