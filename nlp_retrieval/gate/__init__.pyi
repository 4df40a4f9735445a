from nlp_retrieval.gate.checking import Gate as Gate
from nlp_retrieval.gate.checking import GateReport as GateReport
from nlp_retrieval.gate.settings import GateSettings as GateSettings
from nlp_retrieval.gate.settings import read_gate as read_gate
