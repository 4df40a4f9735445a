"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.service.endpoints import BaseService as BaseService
from nlp_retrieval.service.endpoints import Endpoint as Endpoint
from nlp_retrieval.service.endpoints import McpTool as McpTool
from nlp_retrieval.service.endpoints import RefusedError as RefusedError
from nlp_retrieval.service.endpoints import RequestBody as RequestBody
from nlp_retrieval.service.endpoints import ResultCount as ResultCount
from nlp_retrieval.service.endpoints import allowed_filter as allowed_filter
from nlp_retrieval.service.endpoints import describe_filter as describe_filter
from nlp_retrieval.service.index_service import IndexService as IndexService
from nlp_retrieval.service.work import stop_where_nobody_waits as stop_where_nobody_waits
