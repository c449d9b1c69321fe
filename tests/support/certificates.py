"""Certificates for TLS tests, made by the openssl command: nothing of them is kept."""
import os
import subprocess


def openssl(*words, at=None):
    command = ["faketime", at] if at else []
    done = subprocess.run([*command, "openssl", *words], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(words)}: {done.stderr}")


class Authority:
    """A CA in a directory; `certificate()` makes certificates that it signs."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.file = f"{directory}/{name}.pem"
        self.key = f"{directory}/{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-days", "2", "-keyout", self.key, "-out", self.file)

    def certificate(self, name, subject_names, at=None, days=1):
        """Returns the files of a certificate and its key; `at`: when it was made, for so many days."""
        base = f"{self.directory}/{self.name}-{name}"
        with open(f"{base}.ext", "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={subject_names}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{base}.key", "-out", f"{base}.csr")
        openssl("x509", "-req", "-in", f"{base}.csr", "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-days", str(days),
                "-extfile", f"{base}.ext", "-out", f"{base}.pem", at=at)
        os.chmod(f"{base}.key", 0o600)
        return f"{base}.pem", f"{base}.key"

    def revocations(self, *certificates):
        """The file of a list that revokes them."""
        with open(f"{self.directory}/{self.name}.index", "w", encoding="utf-8"):
            pass
        settings, file = f"{self.directory}/{self.name}.conf", f"{self.directory}/{self.name}-{len(certificates)}.crl"
        with open(settings, "w", encoding="utf-8") as out:
            out.write(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {self.directory}/{self.name}.index\ndefault_md = sha256\n")
        signing = ("-config", settings, "-cert", self.file, "-keyfile", self.key)
        for certificate in certificates:
            openssl("ca", *signing, "-revoke", certificate)
        openssl("ca", *signing, "-gencrl", "-crldays", "1", "-out", file)
        return file
