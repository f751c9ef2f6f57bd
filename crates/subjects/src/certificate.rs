//! The certificate of a run over TLS: made for it, signed by itself, and gone with it.

use rcgen::{CertificateParams, DnType, KeyPair};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What the names of the files end with.
const FILES: [&str; 2] = ["certificate.pem", "key.pem"];

/// Files of one run's certificate; removed when dropped.
#[derive(Debug)]
pub struct Certificate {
    /// What the subject shows, PEM.
    pub certificate: PathBuf,
    /// What it holds, which clients are to trust.
    pub text: String,
    /// The subject's key, PEM, which nobody else may read.
    pub key: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// It cannot be written.
    #[error("cannot write {}: {source}; choose another folder with --out", .path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Removes what killed labs left in a folder.
pub fn sweep(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        FILES.iter().any(|end| name.strip_suffix(end).is_some_and(|front| front.ends_with('.')))
    };
    // What cannot be removed is somebody else's.
    files.filter(is_ours).for_each(|path| drop(fs::remove_file(path)));
}

impl Certificate {
    /// Makes one for a subject at this address, and writes it beside `prefix`: ECDSA P-256, as most sites have it.
    pub fn make(address: IpAddr, prefix: &Path) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut subject = CertificateParams::new(vec![address.to_string(), "localhost".to_owned()])?;
        subject.distinguished_name.push(DnType::CommonName, "Pushlab, subject of one run");
        let subject = subject.self_signed(&key)?;
        let file = |name: &str| prefix.with_added_extension(name);
        let [certificate, key_file] = FILES.map(file);
        let made = Self { certificate, text: subject.pem(), key: key_file };
        write(&made.certificate, &made.text, 0o644)?;
        write(&made.key, &key.serialize_pem(), 0o600)?;
        Ok(made)
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        for path in [&self.certificate, &self.key] {
            // What was never written is not there.
            let _ = fs::remove_file(path);
        }
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificateError> {
    // One that a killed lab left is nobody's any more.
    let _ = fs::remove_file(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| CertificateError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_there_while_it_lives() {
        let folder = std::env::temp_dir().join(format!("pushlab-certificate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let made = Certificate::make([10, 83, 0, 1].into(), &folder.join("00001")).unwrap();
        for (path, kind) in [(&made.certificate, "CERTIFICATE"), (&made.key, "PRIVATE KEY")] {
            assert!(fs::read_to_string(path).unwrap().contains(&format!("BEGIN {kind}")), "{}", path.display());
        }
        // As if this process had been killed.
        std::mem::forget(made);
        fs::write(folder.join("monkey.pem"), "").unwrap();
        sweep(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "other files stay");
        fs::remove_file(folder.join("monkey.pem")).unwrap();
        drop(Certificate::make([10, 83, 0, 1].into(), &folder.join("00001")).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let nowhere = Certificate::make([127, 0, 0, 1].into(), &folder.join("no/00001")).unwrap_err().to_string();
        fs::remove_dir(&folder).unwrap();
        assert!(nowhere.contains("--out"), "{nowhere}");
    }
}
