"""The structures of mcds in Python, written from the man page mcds-layout(7) alone.

Public domain (CC0 1.0): copy these files, whole or in part, into anything, with or without this notice.

Everything here takes `at`: a function from a key to the pymemcache client of the key's server, as lines.client()
makes it. With one server it is `lambda key: client`, with a HashClient `lambda key: pool._get_client(key.decode())`.
Only structures with one copy are read and written.
"""
