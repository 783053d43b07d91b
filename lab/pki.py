"""Certificates for one plane: an authority, and certificates for servers, nodes and users."""

import base64
import datetime as dt
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)
_CLOCK_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Certificate authority of one plane. Its key is in a file, too, because the controller manager signs with it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-node-ready lab")])
        builder = _unsigned(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pair = self._write("ca", builder.sign(self._key, hashes.SHA256()), self._key)

    @property
    def certificate(self) -> Path:
        return self.pair.certificate

    def sign(self, file: str, name: str, *, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> Pair:
        """Issue a certificate for `name`, valid for clients and, on those hosts, for servers."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        builder = _unsigned(subject, self._name, key.public_key()).add_extension(usage, critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        return self._write(file, builder.sign(self._key, hashes.SHA256()), key)

    def signing_key(self, file: str) -> Path:
        """Write a private key, such as the one that signs ServiceAccount tokens."""
        return _write_key(self._folder / f"{file}.key", ec.generate_private_key(ec.SECP256R1()))

    def _write(self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
        path = self._folder / f"{file}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return Pair(path, _write_key(self._folder / f"{file}.key", key))


def kubeconfig(path: Path, server: str, authority: Path, credentials: Pair | str) -> Path:
    """Write a kubeconfig for a certificate or a token. It is self-contained, so it can be copied anywhere."""
    user: dict[str, str]
    if isinstance(credentials, Pair):
        user = {
            "client-certificate-data": _inline(credentials.certificate),
            "client-key-data": _inline(credentials.key),
        }
    else:
        user = {"token": credentials}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority-data": _inline(authority)}}],
        "users": [{"name": "lab", "user": user}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1))
    return path


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    path.touch(mode=0o600)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return path


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
