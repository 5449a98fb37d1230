//! Turns the protos into everything that is derived from them: message types and gRPC services, their REST v1 JSON,
//! their validation, the REST routes, the access rules, and the descriptors that reflection and OpenAPI read.
//!
//! Nothing here knows an endpoint, a field or an error: what is special about one is said by an option in its proto.

#[path = "proto/build/json.rs"]
mod json;
#[path = "proto/build/methods.rs"]
mod methods;
#[expect(
    dead_code,
    reason = "the library has this module too, and reads what the build does not"
)]
#[path = "proto/build/options.rs"]
mod options;
#[path = "proto/build/requests.rs"]
mod requests;
#[path = "proto/build/tables.rs"]
mod tables;
#[path = "proto/build/validation.rs"]
mod validation;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;
use prost_reflect::DescriptorPool;
use prost_types::FileDescriptorSet;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its directory in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let descriptors = compile_protos(Path::new("proto"))?;
    fs::write(out.join("descriptors.bin"), &descriptors)?;

    let contract = options::Contract::new(DescriptorPool::decode(descriptors.as_slice())?);
    generate_messages(&contract, &descriptors)?;
    let code = [
        json::implementations(&contract),
        requests::implementations(&contract),
        methods::implementations(&contract),
        tables::implementations(&contract),
        validation::implementations(&contract),
    ];
    fs::write(out.join("contract.rs"), code.concat())?;
    Ok(())
}

/// Compiles our protos, options and comments included.
fn compile_protos(root: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("switchyard/v1"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut compiler = protox::Compiler::new([root])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?;
    // Not `file_descriptor_set()`: that one drops the options that are extensions.
    Ok(compiler.encode_file_descriptor_set())
}

/// Generates the message types, with serde attached, and the gRPC services.
fn generate_messages(contract: &options::Contract, descriptors: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut set = FileDescriptorSet::decode(descriptors)?;
    set.file
        .retain(|file| [options::PACKAGE, "google.protobuf"].contains(&file.package()));
    let mut builder = tonic_prost_build::configure()
        // "Compiled", that is: not prost-types but pbjson-types, whose JSON is the canonical one.
        .compile_well_known_types(true)
        .extern_path(".google.protobuf", "::pbjson_types")
        .btree_map(".")
        .build_transport(false);
    for (path, attribute) in json::type_attributes(contract) {
        builder = builder.message_attribute(path, attribute);
    }
    for (path, attribute) in json::field_attributes(contract) {
        builder = builder.field_attribute(path, attribute);
    }
    builder.compile_fds(set)?;
    Ok(())
}
