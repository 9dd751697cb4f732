"""Key agreement: X25519, and keys for one purpose out of what two parties share."""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from linsketch.errors import ProtocolError
from linsketch.securesum.masks import derive

KEY_BYTES = 32


def public_bytes(private: X25519PrivateKey) -> bytes:
    """Return the public key that belongs to a private one."""
    return private.public_key().public_bytes_raw()


def agree(
    private: X25519PrivateKey, public: bytes, purpose: bytes, context: bytes, length: int = 32
) -> bytes:
    """Return the key that two parties share for one purpose."""
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a point of small order: the shared secret would be known to all
        raise ProtocolError("A public key is not one that a key can be agreed with.") from None
    return derive(shared, purpose, context, length)
