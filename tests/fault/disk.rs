//! The disk of a SQLite database is full under load: callers are told to come again, and once there is room the service
//! goes on by itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{Server, ServerOptions, ShowLog, TemporaryDirectory, say_loudly};

use crate::cluster;
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Tenant};

const KINDS: [Kind; 5] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Calling,
    Kind::Asking,
    Kind::Storing,
];
/// Calls before and after.
const CALLS: usize = 60;
/// Refusals before there is room again.
const REFUSALS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_disk_is_full() {
    let directory = TemporaryDirectory::new("disk").unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else {
        say_loudly("SKIPPED: a full disk: a tmpfs cannot be mounted here (root may, outside of a container)");
        return;
    };
    let options = ServerOptions {
        place: Some(disk.0.clone()),
        ..cluster::options(5_000)
    };
    let server = Server::start(options).await;
    let _log = ShowLog(&server);
    for _ in 0..settings::rounds(1, 20) {
        let tenant = Tenant::open(&server).await;
        let round = tenant.round(&KINDS).await;
        let doors = [server.rest_address()];
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        round.ledger.acknowledged(CALLS).await;
        disk.fill();
        round.ledger.refused_again(REFUSALS).await;
        disk.make_room();
        let so_far = round.ledger.acknowledged_now();
        round.ledger.acknowledged(so_far + CALLS).await;
        load.stop().await;
        assert_eq!(round.ledger.broken(), [""; 0], "a call was not answered");
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(_log);
    drop(server);
}

/// A file system in memory, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"])
            .arg(place)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| Self(place.to_path_buf()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Leaves no byte.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.filler()).unwrap();
        for size in [1 << 20, 4096, 1] {
            let chunk = vec![0_u8; size];
            while filler.write_all(&chunk).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "the small disk stays"
        );
    }
}
