"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.core.files.opening import READ_ERRORS as READ_ERRORS
from nlp_retrieval.core.files.opening import open_bytes as open_bytes
from nlp_retrieval.core.files.opening import read_error as read_error
from nlp_retrieval.core.files.records import CONTENT_NAMES as CONTENT_NAMES
from nlp_retrieval.core.files.records import MAX_ENTRY as MAX_ENTRY
from nlp_retrieval.core.files.records import JsonObject as JsonObject
from nlp_retrieval.core.files.records import as_id as as_id
from nlp_retrieval.core.files.records import as_text as as_text
from nlp_retrieval.core.files.records import kind as kind
from nlp_retrieval.core.files.records import likely as likely
from nlp_retrieval.core.files.records import make_item as make_item
from nlp_retrieval.core.files.records import make_query as make_query
from nlp_retrieval.core.files.records import metadata_of as metadata_of
from nlp_retrieval.core.files.records import quoted as quoted
from nlp_retrieval.core.secrets import HIDDEN as HIDDEN
from nlp_retrieval.loaders.database import hide_secrets as hide_secrets
from nlp_retrieval.loaders.database import make_engine as make_engine
from nlp_retrieval.loaders.database import resolve as resolve
from nlp_retrieval.loaders.database import scrub as scrub
from nlp_retrieval.loaders.files import read_json_lines as read_json_lines
from nlp_retrieval.loaders.files import read_lines as read_lines
from nlp_retrieval.loaders.tables import read_rows as read_rows
