//! A client's check of servers that takes any name: an authority that is trusted signed the
//! certificate, and it is valid now.
//!
//! Servers of MySQL make certificates that name no host; then the authority is all that can be
//! checked. Invariant: nothing but the name is let pass.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Takes a certificate of an authority that is trusted, whatever name it has.
#[derive(Debug)]
pub struct SkipHostnameVerification {
    verifier: Arc<WebPkiServerVerifier>,
}

impl SkipHostnameVerification {
    /// Checks as `verifier` does, but for the name.
    #[must_use]
    pub fn new(verifier: Arc<WebPkiServerVerifier>) -> SkipHostnameVerification {
        SkipHostnameVerification { verifier }
    }
}

impl ServerCertVerifier for SkipHostnameVerification {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = &self.verifier;
        match verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is what is looked at last: all else was right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.verifier;
        verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.verifier;
        verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
