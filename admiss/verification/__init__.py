"""Independent proofs of certificates, see :func:`admiss.verify`."""
