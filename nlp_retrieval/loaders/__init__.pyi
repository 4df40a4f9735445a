"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.core.files.opening import open_bytes as open_bytes
from nlp_retrieval.core.files.records import MAX_ENTRY as MAX_ENTRY
from nlp_retrieval.core.files.records import JsonObject as JsonObject
from nlp_retrieval.core.files.records import as_id as as_id
from nlp_retrieval.core.files.records import as_text as as_text
from nlp_retrieval.core.files.records import kind as kind
from nlp_retrieval.core.files.records import make_item as make_item
from nlp_retrieval.core.files.records import quoted as quoted
from nlp_retrieval.loaders.arrow import HuggingFaceLoader as HuggingFaceLoader
from nlp_retrieval.loaders.arrow import ParquetLoader as ParquetLoader
from nlp_retrieval.loaders.chunking import ChunkingLoader as ChunkingLoader
from nlp_retrieval.loaders.database import DatabaseLoader as DatabaseLoader
from nlp_retrieval.loaders.database import hide_secrets as hide_secrets
from nlp_retrieval.loaders.database import make_engine as make_engine
from nlp_retrieval.loaders.database import resolve as resolve
from nlp_retrieval.loaders.database import scrub as scrub
from nlp_retrieval.loaders.datasets import BeirLoader as BeirLoader
from nlp_retrieval.loaders.datasets import HotpotqaLoader as HotpotqaLoader
from nlp_retrieval.loaders.datasets import HoverLoader as HoverLoader
from nlp_retrieval.loaders.datasets import IrDatasetsLoader as IrDatasetsLoader
from nlp_retrieval.loaders.files import read_json_lines as read_json_lines
from nlp_retrieval.loaders.files import read_lines as read_lines
from nlp_retrieval.loaders.tables import CsvLoader as CsvLoader
from nlp_retrieval.loaders.tables import JsonlLoader as JsonlLoader
from nlp_retrieval.loaders.tables import read_rows as read_rows
from nlp_retrieval.loaders.topics import TopicsLoader as TopicsLoader
