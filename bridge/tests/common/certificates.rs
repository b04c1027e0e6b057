//! Certificates that last as long as a test.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use super::Machine;

/// Who signs.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// The files of one bridge.
pub struct Files {
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, "a test of Ramway");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"))
    }

    /// Signs a certificate for these addresses, and writes the files on the machine.
    pub fn sign(&self, machine: &Machine, name: &str, addresses: &[&str]) -> Files {
        let names: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names of a certificate");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Files {
            ca: machine.write(&format!("{name}.ca.pem"), &self.0.pem()),
            certificate: machine.write(&format!("{name}.pem"), &certificate.pem()),
            key: machine.write(&format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

impl Files {
    /// As it stands in a file of rules.
    pub fn section(&self) -> String {
        let [ca, certificate, key] = [&self.ca, &self.certificate, &self.key].map(|path| path.display());
        format!("[link.tls]\nca = \"{ca}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
    }
}
