"""The parameters of a server, which are the keys of its configuration, with defaults, bounds and descriptions."""

from quercus.specification.parameter import Parameter
from quercus.specification.parameters import MAX_ATTRIBUTES, MAX_CLASSES, MAX_NAME_CHARS, MAX_VALUES

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("human", "json")

STORE = Parameter(
    "store", str, "quercus.db", "Store: a file, sqlite:///path or postgresql://user@host/database", 1
)
HOST = Parameter("host", str, "127.0.0.1", "Address to listen on", 1)
PORT = Parameter("port", int, 50051, "Port; 0: any free one", 0, 65535)
WORKERS = Parameter(
    "workers",
    int,
    1,
    "Number of processes that answer calls; auto: one for each core that this process may use",
    1,
    64,
    choices=("auto",),
)
ACCESS = Parameter(
    "access",
    str,
    "auto",
    "Who may call; tokens: every call needs one (quercus tokens); auto: open on loopback, else tokens",
    choices=("auto", "open", "tokens"),
)
TLS_CERT = Parameter("tls_cert", str, "", "Certificate (PEM), which enables TLS")
TLS_KEY = Parameter("tls_key", str, "", "Private key of the certificate (PEM)")
TLS_CLIENT_CA = Parameter(
    "tls_client_ca",
    str,
    "",
    "Certificates of authorities (PEM); every client needs a certificate that one of them issued",
)
PLAINTEXT = Parameter(
    "plaintext", bool, False, "Serve other machines without TLS because a reverse proxy terminates it"
)
LOG_LEVEL = Parameter("log_level", str, "info", "Lowest level that is logged", choices=LOG_LEVELS)
LOG_FORMAT = Parameter(
    "log_format", str, "human", "Format of log lines; json: one object per line", choices=LOG_FORMATS
)
HTTP_HOST = Parameter("http_host", str, "127.0.0.1", "Address on which HTTP is answered", 1)
HTTP_PORT = Parameter(
    "http_port", int, 0, "Port of HTTP: calls as JSON, health, metrics for Prometheus; 0: off", 0, 65535
)
HTTP_NAMES = Parameter(
    "http_names",
    str,
    "",
    "Host names under which HTTP is answered, separated by commas; addresses and this machine's name need none",
)
HTTP_ORIGINS = Parameter(
    "http_origins",
    str,
    "",
    "Origins, such as https://app.example.org, whose pages may call by HTTP from a browser, separated by commas",
)
PLUGINS = Parameter(
    "plugins",
    str,
    "",
    "Packages whose learners and strategies the server loads, separated by commas; none: all that are installed "
    "beside it; quercus: only its own",
)
GRACE_S = Parameter(
    "grace_s", float, 10.0, "Seconds that a stopping server waits for active calls", 0.0, 3600.0
)
POLL_MS = Parameter(
    "poll_ms",
    int,
    5,
    "Polling interval of the store, in milliseconds; 50 once nothing has changed for a second",
    1,
    10_000,
)
READ_THREADS = Parameter("read_threads", int, 4, "Threads that read the store", 1, 64)
GROWER = Parameter(
    "grower", bool, True, "Whether to run the grower process; only one server of a store in a file may"
)
GROWER_TTL_S = Parameter(
    "grower_ttl_s",
    float,
    5.0,
    "Seconds without a heartbeat after which another server's grower takes over a grower's models (PostgreSQL)",
    0.5,
    300.0,
)
SNAPSHOT_INTERVAL_S = Parameter(
    "snapshot_interval_s",
    float,
    0.2,
    "Least number of seconds between two trees of a model while rows arrive",
    0.0,
    60.0,
)

MAX_MESSAGE_BYTES = Parameter(
    "max_message_bytes", int, 16 * 1024 * 1024, "Maximum size of a received message, in bytes", 1024, 1024**3
)
MAX_CONNECTIONS = Parameter(
    "max_connections", int, 10_000, "Maximum number of connections at a time", 1, 100_000
)
MAX_CALLS = Parameter("max_calls", int, 10_000, "Maximum number of active calls, streams included", 1, 10_000)
MAX_STREAMS = Parameter(
    "max_streams",
    int,
    2_000,
    "Maximum number of streams of one caller (a token, or an address if the server is open)",
    1,
    10_000,
)
MAX_LEASES = Parameter(
    "max_leases", int, 100, "Maximum number of queries that one stream or one call leases", 1, 100
)
PUSH_WINDOW = Parameter(
    "push_window",
    int,
    64,
    "Maximum number of batches of one push stream that are read but not acknowledged",
    1,
    1024,
)
MAX_BATCH_ROWS = Parameter(
    "max_batch_rows", int, 10_000, "Maximum number of rows in one push or one classification", 1, 10_000
)
CALLS_PER_S = Parameter(
    "calls_per_s",
    float,
    0.0,
    "Maximum number of calls, and of messages in streams, per second and caller; 0: no bound",
    0.0,
    1e6,
)
MAX_MODELS = Parameter("max_models", int, 10_000, "Maximum number of models in the store", 1, 10_000)
MAX_MODEL_ATTRIBUTES = Parameter(
    "max_attributes", int, MAX_ATTRIBUTES, "Maximum number of attributes of a new model", 1, MAX_ATTRIBUTES
)
MAX_ATTRIBUTE_VALUES = Parameter(
    "max_values",
    int,
    MAX_VALUES,
    "Maximum number of values of a nominal attribute of a new model, declared and learned",
    1,
    MAX_VALUES,
)
MAX_MODEL_CLASSES = Parameter(
    "max_classes", int, MAX_CLASSES, "Maximum number of classes of a new model", 2, MAX_CLASSES
)
MAX_NAME_CHARACTERS = Parameter(
    "max_name_characters",
    int,
    MAX_NAME_CHARS,
    "Maximum length of the name of a class, an attribute or a value",
    1,
    MAX_NAME_CHARS,
)
MAX_LEARNING_COST = Parameter(
    "max_learning_cost",
    int,
    10_000,
    "Maximum number of trees that a learner grows to learn once (docs/serving.md says what counts)",
    1,
    1_000_000,  # more than any learner can ask for
)
MAX_MEMORY_BYTES = Parameter(
    "max_memory_bytes",
    int,
    0,
    "Bytes of memory above which the server refuses new work; 0: three quarters of the machine's memory",
    0,
    2**63,
)
MAX_MODEL_MEMORY_BYTES = Parameter(
    "max_model_memory_bytes",
    int,
    0,
    "Bytes of memory above which a large model is grown no further; 0: a quarter of the machine's memory",
    0,
    2**63,
)
CHECK_S = Parameter(
    "check_s",
    float,
    5.0,
    "Maximum number of seconds for which the start checks the store for damage",
    0.0,
    3600.0,
)
KEEP_TREES = Parameter(
    "keep_trees", int, 1_000, "Number of tree versions that the store keeps of each model", 1, 1_000_000_000
)
AGENDA_SHARE = Parameter(
    "agenda_share",
    float,
    0.25,
    "Share of the time of one core that the grower spends on choosing the queries of a model",
    0.01,
    1.0,
)

LIMITS = (
    MAX_MESSAGE_BYTES,
    MAX_BATCH_ROWS,
    PUSH_WINDOW,
    MAX_CONNECTIONS,
    MAX_CALLS,
    MAX_STREAMS,
    MAX_LEASES,
    CALLS_PER_S,
    MAX_MODELS,
    MAX_MODEL_ATTRIBUTES,
    MAX_ATTRIBUTE_VALUES,
    MAX_MODEL_CLASSES,
    MAX_NAME_CHARACTERS,
    MAX_LEARNING_COST,
    MAX_MEMORY_BYTES,
    MAX_MODEL_MEMORY_BYTES,
    CHECK_S,
    KEEP_TREES,
    AGENDA_SHARE,
)
"""The parameters that ``--limit`` sets; they have no separate flags."""

NO_FLAG = (HTTP_NAMES, HTTP_ORIGINS, PLUGINS, POLL_MS, READ_THREADS, GROWER, GROWER_TTL_S)
"""The parameters that only the file and the environment can set."""

PARAMETERS = {each.name: each for each in tuple(globals().values()) if isinstance(each, Parameter)}
"""All parameters of a server, by name."""
