"""Addresses for servers that must be told a port."""
import os


def own_address(number=0):
    """A loopback address that no other process takes at this time: by the process, never by a seed that suites share.
    Another `number`, from 0 to 253, is another address."""
    pid = os.getpid()
    return f"127.{number + 1}.{pid // 254 % 256}.{pid % 254 + 1}"
