"""An SFTP server for tests that lets people in by a password: OpenSSH does that for accounts of the machine only.

Started with one argument, a JSON object: `directory`, `user`, `password`, and `asks` (whether it asks for the password in its own
words, as servers with PAM do). Files are those of the folder `files`. It listens on a port of its own, which it writes into the
file `port`, and its public key into `host_key`.
"""

import asyncio
import json
import os
import sys

import asyncssh


class Door(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return not settings["asks"]

    def validate_password(self, username, password):
        return (username, password) == (settings["user"], settings["password"])

    def kbdint_auth_supported(self):
        return settings["asks"]

    def get_kbdint_challenge(self, username, lang, submethods):
        return "", "", "", [("What is your password?", False)]

    def validate_kbdint_response(self, username, responses):
        return self.validate_password(username, responses[0])


def put(name, text):
    path = os.path.join(settings["directory"], name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


async def serve():
    key = asyncssh.generate_private_key("ssh-ed25519")
    put("host_key", key.export_public_key().decode())
    files = os.path.join(settings["directory"], "files")

    def folder(connection):
        return asyncssh.SFTPServer(connection, chroot=files)

    server = await asyncssh.create_server(Door, "127.0.0.1", 0, server_host_keys=[key], sftp_factory=folder)
    put("port", str(server.sockets[0].getsockname()[1]))
    await asyncio.Event().wait()


settings = json.loads(sys.argv[1])
asyncio.run(serve())
