"""A mail server for tests: takes e-mails over SMTP, and writes each as a JSON file, read by Python's own library.

Started with one argument, a JSON object: `directory`, `security` (none, starttls, tls), `certificate` and `key` (files), `user`
and `password` (absent: nobody has to log in). It listens on a port of its own, which it writes into the file `port`. Some
names of mailboxes behave: `refused` and `later` are no recipients (550, 451), `busy` no sender (451), and for `drop` the
connection ends when the e-mail has come, without an answer.
"""

import asyncio
import base64
import email
import email.policy
import json
import os
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


def put(directory, name, text):
    """Writes a file that is whole when it is there."""
    path = os.path.join(directory, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def shown(data):
    """An e-mail as readers see it."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    body = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    return {
        "headers": [[name, str(value)] for name, value in message.items()],
        "subject": str(message["subject"]),
        "text": body["plain"] and body["plain"].get_content(),
        "html": body["html"] and body["html"].get_content(),
        "attachments": [
            {
                "filename": part.get_filename(),
                "mimeType": part.get_content_type(),
                "base64": base64.b64encode(part.get_payload(decode=True)).decode(),
            }
            for part in message.iter_attachments()
        ],
    }


class Mailbox:
    def __init__(self, directory):
        self.directory = directory
        self.number = 0

    async def handle_MAIL(self, server, session, envelope, address, options):
        if address.startswith("busy@"):
            return "451 4.3.2 the mailbox is busy"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused@"):
            return "550 5.1.1 there is no such mailbox"
        if address.startswith("later@"):
            return "451 4.2.1 the mailbox is locked"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server, session, envelope):
        self.number += 1
        letter = {"from": envelope.mail_from, "to": envelope.rcpt_tos, "options": envelope.mail_options}
        encrypted = server.transport.get_extra_info("ssl_object") is not None
        login = session.auth_data.login.decode() if session.auth_data else None
        letter.update(shown(envelope.content), encrypted=encrypted, login=login)
        put(self.directory, f"{self.number}.json", json.dumps(letter))
        if any(address.startswith("drop@") for address in envelope.rcpt_tos):
            server.transport.abort()
        return f"250 2.0.0 queued as {self.number}"


async def serve(settings):
    security, user = settings["security"], settings.get("user")
    context = None
    if security != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings["certificate"], settings["key"])

    def authenticate(server, session, envelope, mechanism, data):
        right = isinstance(data, LoginPassword) and data == LoginPassword(user.encode(), settings["password"].encode())
        return AuthResult(success=right, handled=False, auth_data=data)

    mailbox = Mailbox(settings["directory"])

    def session():
        return SMTP(
            mailbox,
            enable_SMTPUTF8=True,
            tls_context=context if security == "starttls" else None,
            require_starttls=security == "starttls",
            auth_required=user is not None,
            auth_require_tls=security == "starttls",
            authenticator=authenticate,
        )

    wrapped = context if security == "tls" else None
    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0, ssl=wrapped)
    put(settings["directory"], "port", str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


asyncio.run(serve(json.loads(sys.argv[1])))
