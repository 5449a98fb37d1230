//! Compiles the journal's messages, and their canonical JSON, from the protobuf sources of the workspace.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let proto_root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let journal = "switchyard/journal/v1/journal.proto";
    println!("cargo:rerun-if-changed={}", proto_root.join(journal).display());

    let descriptors = protox::Compiler::new([&proto_root])?
        .include_imports(true)
        .open_file(journal)?
        .encode_file_descriptor_set();
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .build(&[".switchyard.journal.v1"])?;
    let decoded = protox::prost::Message::decode(descriptors.as_slice())?;
    prost_build::Config::new().compile_fds(decoded)?;
    Ok(())
}
