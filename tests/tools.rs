//! What all tools have in common.

mod suite;

use std::path::Path;
use std::process::Command;

use suite::Tool;

const MKFS: Tool = Tool {
    binary: env!("CARGO_BIN_EXE_xfskit-mkfs"),
    name: "xfskit-mkfs",
    // As with mkfs.xfs, whatever goes wrong ends with 1.
    usage_error: 1,
    reading: &["-N", "-f"],
};

const INFO: Tool =
    Tool { binary: env!("CARGO_BIN_EXE_xfskit-info"), name: "xfskit-info", usage_error: 2, reading: &[] };

const DB: Tool =
    Tool { binary: env!("CARGO_BIN_EXE_xfskit-db"), name: "xfskit-db", usage_error: 2, reading: &["-c", "help"] };

const FILES: Tool = Tool {
    binary: env!("CARGO_BIN_EXE_xfskit-files"),
    name: "xfskit-files",
    usage_error: 2,
    reading: &["ls", "-l", "-d"],
};

const LOGPRINT: Tool =
    Tool { binary: env!("CARGO_BIN_EXE_xfskit-logprint"), name: "xfskit-logprint", usage_error: 2, reading: &["-t"] };

const METADUMP: Tool = Tool {
    binary: env!("CARGO_BIN_EXE_xfskit-metadump"),
    name: "xfskit-metadump",
    usage_error: 2,
    reading: &["-a", "-o", "-v2", "--zstd"],
};

const MDRESTORE: Tool =
    Tool { binary: env!("CARGO_BIN_EXE_xfskit-mdrestore"), name: "xfskit-mdrestore", usage_error: 2, reading: &["-i"] };

/// A filesystem to read.
fn image(path: &Path) {
    let status = Command::new(MKFS.binary).args(["-q", "--size", "300m"]).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "no image could be made");
}

mod mkfs {
    use super::{MKFS, image};
    use crate::common_checks;
    common_checks!(MKFS, image);
}

mod info {
    use super::{INFO, image};
    use crate::common_checks;
    common_checks!(INFO, image);
}

mod db {
    use super::{DB, image};
    use crate::common_checks;
    common_checks!(DB, image);
}

mod files {
    use super::{FILES, image};
    use crate::common_checks;
    common_checks!(FILES, image);
}

/// Every binary of the package is in the list above.
#[test]
fn no_tool_is_left_out() {
    let names: Vec<_> = xfskit::cli::manual::TOOLS.iter().map(|tool| tool.name).collect();
    assert_eq!(names, [MKFS, INFO, DB, FILES, LOGPRINT, METADUMP, MDRESTORE].map(|tool| tool.name));
}

mod logprint {
    use super::{LOGPRINT, image};
    use crate::common_checks;
    common_checks!(LOGPRINT, image);
}

mod metadump {
    use super::{METADUMP, image};
    use crate::common_checks;
    common_checks!(METADUMP, image);
}

/// It reads dumps, not filesystems, and from pipes too.
mod mdrestore {
    use super::MDRESTORE;
    use crate::suite;

    #[test]
    fn arguments() {
        suite::help(&MDRESTORE);
        suite::version(&MDRESTORE);
        suite::bad_option(&MDRESTORE);
        suite::no_arguments(&MDRESTORE);
        suite::closed_output(&MDRESTORE);
    }

    #[test]
    fn what_is_no_dump() {
        suite::missing_file(&MDRESTORE);
        suite::tiny_file(&MDRESTORE);
    }
}
