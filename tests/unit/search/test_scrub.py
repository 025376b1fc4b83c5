"""Messages of databases, as drivers and servers write them: nothing of the address is left."""

import pytest

from warpzone.search.scrub import hide_names, hide_parts, hide_passwords

URL = "postgresql://mario:ge%40h%2feim%21@db.secret.example:54321/castle"
SECRETS = (
    *("mario", "ge@h/eim!", "ge%40h", "db.secret", "10.1.2.3", "54321", "castle", "2001:db8"),
    *("luigi", "/run/pg"),
)
#: Driver or server -> what it said, and what is to be read of it.
MESSAGES = [
    ('connection failed: connection to server at "10.1.2.3", port 54321 failed: Connection refused',
     "Connection refused"),
    ('connection to server at "db.secret.example" (10.1.2.3), port 54321 failed: timeout expired',
     "timeout expired"),
    ('connection is bad: connection to server on socket "/run/pg/.s.PGSQL.54321" failed: '
     "No such file or directory", "No such file or directory"),
    ('connection failed: connection to server at "2001:db8::7", port 54321 failed: No route',
     "No route"),
    ("failed to resolve host 'db.secret.example': [Errno -2] Name or service not known",
     "failed to resolve host '***': [Errno -2] Name or service not known"),
    ('could not translate host name "db.secret.example" to address: Name or service not known',
     'could not translate host name "***" to address: Name or service not known'),
    ('connection to server at "10.1.2.3", port 54321 failed: FATAL:  password authentication '
     'failed for user "mario"', 'FATAL:  password authentication failed for user "***"'),
    ('FATAL:  database "castle" does not exist', 'FATAL:  database "***" does not exist'),
    ('FATAL:  role "luigi" does not exist', 'FATAL:  role "***" does not exist'),
    ('FATAL:  no pg_hba.conf entry for host "10.1.2.3", user "mario", database "castle", SSL off',
     'FATAL:  no pg_hba.conf entry for host "***", user "***", database "***", SSL off'),
    ("FATAL:  Passwort-Authentifizierung für Benutzer »luigi« fehlgeschlagen",
     "FATAL:  Passwort-Authentifizierung für Benutzer »***« fehlgeschlagen"),
    ("FATAL:  authentification par mot de passe échouée pour l'utilisateur « luigi »",
     "FATAL:  authentification par mot de passe échouée pour l'utilisateur «***»"),
    ("- host: 'db.secret.example', port: '54321', hostaddr: '10.1.2.3': it can't be reached",
     "- host: '***', port: '***', hostaddr: '***': it can't be reached"),
    ("error ignored in rollback on <psycopg.Connection [BAD] (host=10.1.2.3 port=54321 user=luigi "
     "database=castle) at 0x7f>", "error ignored in rollback on <psycopg.Connection [BAD] "
     "(host=*** port=*** user=*** database=***) at 0x7f>"),
    ("invalid dsn: host=db.secret.example password=ge@h/eim! dbname=castle",
     "invalid dsn: host=*** password=*** dbname=***"),
    (f"Could not parse SQLAlchemy URL from string '{URL}'",
     "Could not parse SQLAlchemy URL from string '***'"),
    ("postgresql+psycopg://mario:ge%40h%2Feim%21@DB.SECRET.EXAMPLE:54321/castle is wrong",
     "postgresql+psycopg://***:***@***:***/*** is wrong"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "left"), MESSAGES)
def test_nothing_of_the_address_is_left(said: str, left: str) -> None:
    found = hide_names(hide_parts(said, URL))
    assert found == left
    assert not any(secret in found.lower() for secret in SECRETS)


@pytest.mark.parametrize(
    "said",
    [
        "server closed the connection unexpectedly",
        "file is not a database",
        "[Errno 28] No space left on device",
        "relation does not exist at character 15",
        "SSL error: certificate verify failed",
        "the mariorun and a castled king",
    ],
)
def test_the_rest_of_a_message_stays(said: str) -> None:
    assert hide_names(hide_parts(said, URL)) == said


def test_parts_are_hidden_wherever_the_url_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://a.example:7001,b.example:7002/x1?user=peach&password=to%20ad&host=/run/pg"
    said = "a.example b.example 7001 7002 x1 peach 'to ad' to+ad to%20ad /run/pg"
    assert hide_parts(said, url) == "*** *** *** *** *** *** '***' *** *** ***"
    assert hide_parts("::1 and 7001", "postgresql://u:p@[::1]:7001/d") == "*** and ***"
    monkeypatch.setenv("PGUSER", "bowser")
    monkeypatch.setenv("PGPASSWORD", "fire!flower")
    assert hide_parts("bowser has fire!flower", "postgresql:///x1") == "*** has ***"
    # As the URL has it, decoded, and encoded by others.
    assert hide_parts("ge%40h%2feim%21 ge@h/eim! ge%40h/eim%21", URL) == "*** *** ***"
    # A file is no server.
    assert hide_parts("bowser at /data/x.db", "sqlite:////data/x.db") == "bowser at ***"


def test_passwords_are_hidden_within_words_unless_they_are_short() -> None:
    assert hide_parts("xgeheimx", "postgresql://u:geheim@h/d") == "x***x"
    assert hide_parts("a database p", "postgresql://u:p@h/d") == "a database ***"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://mario@db:5432/runs", "postgresql://mario@db:5432/runs"),
        ("postgresql://mario:@db/runs", "postgresql://mario:@db/runs"),
        ("postgresql://m:a:b@c@db/runs", "postgresql://m:***@db/runs"),
        ("postgresql://m:1/b@db/runs", "postgresql://m:***@db/runs"),
        ("postgresql://m@x:pw@db/runs", "postgresql://m@x:***@db/runs"),
        ("postgresql://db/runs?password=pw&user=m", "postgresql://db/runs?password=***&user=m"),
        ("postgresql://db/runs?user=m&sslpassword=pw", "postgresql://db/runs?user=m&sslpassword=***"),
        ("runs/journal.log", "runs/journal.log"),
    ],
)  # fmt: skip
def test_passwords_of_a_url(url: str, shown: str) -> None:
    assert hide_passwords(url) == shown
