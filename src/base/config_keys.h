/* The one table of settings. Include it with QR_KEY(id, name, type, text, number, min, max, unit, choices, secret, when,
 * doc) defined: `text` is the default of strings, paths and choices, `number` that of numbers and sizes, `when` says whether a
 * program that runs takes another value (RELOAD) or has to be started again (START).
 *
 * A setting is named "section.key"; in the file it is `key` under `[section]`, in the environment QUIRE_SECTION_KEY, as
 * a flag `--set section.key=value`. docs/CONFIG.md is printed from this table (`quire help config`), and a test
 * compares the two. A key is added here together with the code that uses it. */

/* clang-format off */
#define QR_KEY_PATH(id, name, text, when, doc)                      QR_KEY(id, name, QR_TYPE_PATH,    text, 0,      0,   0,   "",   "",      false, QR_CONFIG_AT_##when, doc)
#define QR_KEY_TEXT(id, name, text, allowed, when, doc)             QR_KEY(id, name, QR_TYPE_STRING,  text, 0,      0,   0,   "",   allowed, false, QR_CONFIG_AT_##when, doc)
#define QR_KEY_SECRET(id, name, text, allowed, when, doc)           QR_KEY(id, name, QR_TYPE_STRING,  text, 0,      0,   0,   "",   allowed, true,  QR_CONFIG_AT_##when, doc)
#define QR_KEY_INTEGER(id, name, number, min, max, unit, when, doc) QR_KEY(id, name, QR_TYPE_INTEGER, "",   number, min, max, unit, "",      false, QR_CONFIG_AT_##when, doc)
#define QR_KEY_SIZE(id, name, number, min, max, when, doc)          QR_KEY(id, name, QR_TYPE_SIZE,    "",   number, min, max, "",   "",      false, QR_CONFIG_AT_##when, doc)
#define QR_KEY_ENUM(id, name, text, choices, when, doc)             QR_KEY(id, name, QR_TYPE_ENUM,    text, 0,      0,   0,   "",   choices, false, QR_CONFIG_AT_##when, doc)

QR_KEY_PATH(DATA_DIR, "data.dir", "~/.local/share/quire", START,
    "The data folder; made when it is missing. Where XDG_DATA_HOME is set the default is $XDG_DATA_HOME/quire. Also --data and QUIRE_DATA.")

QR_KEY_SECRET(DATABASE_URL, "database.url", "sqlite", "sqlite or a URL that begins with postgresql://", START,
    "`sqlite` keeps everything in quire.db in the data folder; postgresql://USER:PASSWORD@HOST/DATABASE uses that server. The password is never shown.")
QR_KEY_INTEGER(DATABASE_CONNECTIONS, "database.connections", 4, 1, 64, "", START,
    "Connections at most: for reads beside the one that writes (SQLite), for reads and writes beside the one that listens (PostgreSQL, where one more is for questions inside of a write).")
QR_KEY_INTEGER(DATABASE_READ_DEADLINE_MS, "database.read_deadline_ms", 5000, 10, 600000, "ms", START,
    "A read that takes longer is stopped, once it has its connection: a forgotten reader would keep the log from shrinking.")
QR_KEY_INTEGER(DATABASE_WRITE_DEADLINE_MS, "database.write_deadline_ms", 30000, 10, 600000, "ms", START,
    "PostgreSQL: how long a write is tried again while the server is away.")
QR_KEY_SIZE(DATABASE_WAL_SOFT_LIMIT, "database.wal_soft_limit", 8 << 20, 1 << 20, 1 << 30, START,
    "SQLite: from this size of its log on, the log is written back in the background.")
QR_KEY_SIZE(DATABASE_WAL_HARD_LIMIT, "database.wal_hard_limit", 64 << 20, 2 << 20, INT64_C(4) << 30, START,
    "SQLite: at this size writes wait until the log is emptied; at least twice the soft limit.")

QR_KEY_SIZE(CACHE_VECTOR_LIMIT, "cache.vector_limit", INT64_C(2) << 30, 0, INT64_C(4096) << 30, START,
    "Vectors that no base uses any more are kept up to this size of the whole cache, those used last. What bases use is kept whatever the size.")

QR_KEY_ENUM(LOG_LEVEL, "log.level", "info", "debug info warn error", RELOAD,
    "The least important lines that are logged, to standard error.")
QR_KEY_ENUM(LOG_FORMAT, "log.format", "text", "text json", RELOAD,
    "Log lines as key=value or as JSON objects.")

QR_KEY_PATH(READER_PROGRAM, "reader.program", "quire-reader", START,
    "The program in which files are read, without any rights. A name alone is looked for beside the running program, then where Quire is installed.")
QR_KEY_INTEGER(SEARCH_MODEL_WAIT_MS, "search.model_wait_ms", 3000, 1, 600000, "ms", RELOAD,
    "So long a search waits for the embedding model to read its query; then it answers by words alone, and says so.")
QR_KEY_SIZE(SEARCH_VECTOR_MEMORY, "search.vector_memory", 256 << 20, 0, INT64_C(1024) << 30, START,
    "SQLite: vectors of the bases that are searched are kept in memory up to this size, those used last; a base that does not fit is searched in its file, which takes longer and finds the same.")
QR_KEY_TEXT(SERVER_IMPORT_ROOTS, "server.import_roots", "none", "none, or absolute paths with a colon between two", RELOAD,
    "Folders of this machine from which keys may add files and folders by their path. The local owner may add any.")

QR_KEY_TEXT(SERVER_LISTEN, "server.listen", "127.0.0.1:7700", "ADDRESS:PORT, as in 127.0.0.1:7700, [::1]:7700 or 0.0.0.0:0", START,
    "Where `quire serve` takes requests, beside the socket in the data folder. Port 0 is any that is free; which one is printed. Also --listen.")
QR_KEY_PATH(SERVER_TLS_CERTIFICATE, "server.tls_certificate", "none", RELOAD,
    "PEM file with the server's certificate and those that lead to its root: then `quire serve` speaks HTTPS, TLS 1.2 and 1.3, and nothing else. Read again at a reload; switching HTTPS on or off takes a restart.")
QR_KEY_PATH(SERVER_TLS_KEY, "server.tls_key", "none", RELOAD,
    "PEM file with the certificate's key, without a passphrase, and not readable by everybody.")
QR_KEY_TEXT(SERVER_HOSTS, "server.hosts", "-", "names separated by commas, - for none", RELOAD,
    "The names that the server goes by, as browsers write them into Host. On a loopback address others than localhost are refused unless they are listed here; elsewhere any is taken when the list is empty.")
QR_KEY_TEXT(SERVER_SERVICE_HOSTS, "server.service_hosts", "-", "names separated by commas, with a port or without, - for none", RELOAD,
    "Servers whose address (url) the owner of a base may put into its settings, as in models.example or 10.0.0.5:8080. An admin key may name any.")
QR_KEY_INTEGER(SERVER_THREADS, "server.threads", 16, 1, 256, "", START,
    "So many requests are worked on at once; others wait for their turn.")
QR_KEY_INTEGER(SERVER_CONNECTIONS, "server.connections", 2048, 4, 65536, "", START,
    "Connections at most, in all. Who comes then waits until another one leaves.")
QR_KEY_INTEGER(SERVER_ADDRESS_CONNECTIONS, "server.address_connections", 512, 0, 65536, "", RELOAD,
    "Connections at most from one address; more are hung up on. 0 is any number.")
QR_KEY_INTEGER(SERVER_ADDRESS_REQUESTS, "server.address_requests", 1000, 0, 1000000, "a second", RELOAD,
    "Requests at most from one address, after a burst of twice as many; more are refused with `rate_limited`. 0 is any number.")
QR_KEY_INTEGER(SERVER_STREAMS, "server.streams", 1000, 1, 65536, "", START,
    "Clients at most that follow events; server.connections leaves room for others. More are refused with `unavailable`.")
QR_KEY_INTEGER(SERVER_ADDRESS_STREAMS, "server.address_streams", 250, 0, 65536, "", START,
    "Of these from one address; more are refused with `rate_limited`. 0 is any number.")
QR_KEY_INTEGER(SERVER_HEARTBEAT_MS, "server.heartbeat_ms", 15000, 100, 600000, "ms", START,
    "So often who follows events is sent a sign of life when there are none.")
QR_KEY_INTEGER(SERVER_REQUEST_MS, "server.request_ms", 30000, 100, 3600000, "ms", RELOAD,
    "So long a client may take to send a request's headers, again for its body, and to read its answer; large ones get the time that server.rate_min gives them. Then it is hung up on.")
QR_KEY_SIZE(SERVER_RATE_MIN, "server.rate_min", 64 << 10, 1 << 10, 1 << 30, RELOAD,
    "Bytes a second: who sends or reads slower than this has no more time than server.request_ms.")
QR_KEY_SIZE(SERVER_UPLOAD_LIMIT, "server.upload_limit", INT64_C(4) << 30, 1 << 10, INT64_C(1024) << 30, RELOAD,
    "The most that one upload may have.")
QR_KEY_SIZE(SERVER_BODY_LIMIT, "server.body_limit", 64 << 20, 1 << 10, 64 << 20, RELOAD,
    "The largest body of a request that is no upload.")
/* clang-format on */

#undef QR_KEY_TEXT
#undef QR_KEY_PATH
#undef QR_KEY_SECRET
#undef QR_KEY_INTEGER
#undef QR_KEY_SIZE
#undef QR_KEY_ENUM
