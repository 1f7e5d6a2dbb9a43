//! See [`caipe_image`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use caipe_image::bom::Subject;
use caipe_image::config::{About, NAME, Run, annotations, run};
use caipe_image::layer::{Form, Layer};
use caipe_image::oci::Image;
use caipe_image::root::Programs;
use caipe_image::{bom, elf, oci, root, tree};
use clap::{Parser, Subcommand};
use jiff::Timestamp;

/// Packs container images: of the supervisor and the operator, or of a directory
#[derive(Debug, Parser)]
#[command(name = "caipe-image", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the image as an archive
    Archive(Archive),
    /// Write the files of the image into a directory; as root, with their owners
    Tree(Tree),
    /// Write an uncompressed image of a directory, owned by root, for use on this machine
    Directory(Directory),
    /// Write the bill of materials of an image from those of its programs
    Bom(Bom),
}

#[derive(Debug, clap::Args)]
struct Paths {
    /// The supervisor, linked statically
    #[arg(long)]
    supervisor: PathBuf,
    /// The operator, linked statically
    #[arg(long)]
    operator: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Archive {
    #[command(flatten)]
    programs: Paths,
    /// Where to write the archive
    #[arg(long)]
    out: PathBuf,
    /// The image's name, with its tag
    #[arg(long, default_value = NAME)]
    name: String,
    /// The commit that the programs were built from
    #[arg(long)]
    revision: Option<String>,
    /// When that was made, in seconds since 1970
    #[arg(long, env = "SOURCE_DATE_EPOCH")]
    created: Option<i64>,
}

#[derive(Debug, clap::Args)]
struct Directory {
    /// The root of its file system
    #[arg(long)]
    root: PathBuf,
    /// Where to write the archive
    #[arg(long)]
    out: PathBuf,
    /// The image's name, with its tag
    #[arg(long)]
    name: String,
    /// A variable, NAME=VALUE; may be repeated
    #[arg(long)]
    env: Vec<String>,
    /// The working directory
    #[arg(long, default_value = "/")]
    workdir: String,
    /// A port that it listens on; may be repeated
    #[arg(long)]
    port: Vec<u16>,
    /// The entrypoint
    #[arg(last = true, required = true)]
    entrypoint: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Bom {
    /// The image's archive
    #[arg(long)]
    image: PathBuf,
    /// A program's list, as `cargo cyclonedx` writes it; may be repeated
    #[arg(long, required = true)]
    program: Vec<PathBuf>,
    /// The list of this program, some of whose data is in the image
    #[arg(long)]
    packer: PathBuf,
    /// Where to write the list
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Tree {
    #[command(flatten)]
    programs: Paths,
    /// The directory
    #[arg(long)]
    out: PathBuf,
    /// Do not change the owner of the files
    #[arg(long)]
    keep_owner: bool,
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Archive(args) => archive(&args),
        Command::Tree(args) => write_tree(&args),
        Command::Directory(args) => directory(args),
        Command::Bom(args) => write_bom(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("caipe-image: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn archive(args: &Archive) -> anyhow::Result<()> {
    let (programs, architecture) = args.programs.read()?;
    let layer = Layer::new(&root::files(programs), Form::Zstd).context("failed to pack the files")?;
    let created = args.created.map(Timestamp::from_second).transpose().context("failed to read the time")?;
    let about = About { version: env!("CARGO_PKG_VERSION").to_owned(), revision: args.revision.clone() };
    let image = Image {
        name: args.name.clone(),
        architecture,
        created: created.map(|time| time.to_string()),
        config: run(&about),
    };
    write(&image, &layer, &args.out)
}

/// Programs need not be static, because the directory has their loader and libraries.
fn directory(args: Directory) -> anyhow::Result<()> {
    let entries =
        tree::read(&args.root).with_context(|| format!("failed to read {}", args.root.display()))?;
    let layer = Layer::new(&entries, Form::Plain).context("failed to pack the files")?;
    let run = Run {
        entrypoint: args.entrypoint,
        env: args.env,
        directory: args.workdir,
        ports: args.port,
        ..Run::default()
    };
    let title = args.name.split(':').next().unwrap_or_default();
    let image = Image {
        architecture: architecture_here()?,
        created: None,
        config: run.config(&annotations([("title", title)])),
        name: args.name,
    };
    write(&image, &layer, &args.out)
}

fn architecture_here() -> anyhow::Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => anyhow::bail!("no images are made for {other}"),
    }
}

/// Writes the archive and prints its name and digest.
fn write(image: &Image, layer: &Layer, out: &Path) -> anyhow::Result<()> {
    let packed = oci::pack(image, layer).context("failed to pack the image")?;
    fs::write(out, &packed.archive).with_context(|| format!("failed to write {}", out.display()))?;
    println!("{} {}", image.name, packed.digest);
    println!("{}: 1 layer, {} bytes, {} unpacked", out.display(), layer.bytes.len(), layer.unpacked);
    Ok(())
}

fn write_bom(args: &Bom) -> anyhow::Result<()> {
    let image = fs::File::open(&args.image).and_then(oci::identity);
    let (name, digest) = image.with_context(|| format!("failed to read {}", args.image.display()))?;
    let programs = args.program.iter().map(|path| json(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let bill = bom::of_image(&Subject { name, digest }, &programs, &json(&args.packer)?)?;
    let text = serde_json::to_string_pretty(&bill)? + "\n";
    fs::write(&args.out, text).with_context(|| format!("failed to write {}", args.out.display()))?;
    let count = bill["components"].as_array().map_or(0, Vec::len);
    println!("{}: {count} components", args.out.display());
    Ok(())
}

fn json(path: &Path) -> anyhow::Result<serde_json::Value> {
    let text = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("failed to read {}", path.display()))
}

fn write_tree(args: &Tree) -> anyhow::Result<()> {
    let (programs, _) = args.programs.read()?;
    tree::write(&args.out, &root::files(programs), !args.keep_owner)
        .with_context(|| format!("failed to write into {}", args.out.display()))
}

impl Paths {
    /// Both programs, and the architecture that they are for.
    fn read(&self) -> anyhow::Result<(Programs, &'static str)> {
        let (supervisor, architecture) = program(&self.supervisor)?;
        let (operator, other) = program(&self.operator)?;
        ensure!(architecture == other, "the supervisor is for {architecture}, the operator for {other}");
        Ok((Programs { supervisor, operator }, architecture))
    }
}

/// The program's bytes, and the architecture that it is for.
fn program(path: &Path) -> anyhow::Result<(Vec<u8>, &'static str)> {
    let bytes = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let architecture =
        elf::architecture(&bytes).with_context(|| format!("failed to pack {}", path.display()))?;
    Ok((bytes, architecture))
}
