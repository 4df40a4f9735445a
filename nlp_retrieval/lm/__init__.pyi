"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.lm.answering import AnsweredQuestion as AnsweredQuestion
from nlp_retrieval.lm.answering import BaseAnswerer as BaseAnswerer
from nlp_retrieval.lm.answering import LanguageModelAnswerer as LanguageModelAnswerer
from nlp_retrieval.lm.answering import QuestionAnswering as QuestionAnswering
from nlp_retrieval.lm.asking import AskingLine as AskingLine
from nlp_retrieval.lm.asking import ask_all as ask_all
from nlp_retrieval.lm.counting import CallCounts as CallCounts
from nlp_retrieval.lm.counting import record_calls as record_calls
from nlp_retrieval.lm.endpoint import ModelEndpoint as ModelEndpoint
from nlp_retrieval.lm.endpoint import side_by_side as side_by_side
from nlp_retrieval.lm.engine import dspy as dspy
from nlp_retrieval.lm.language_model import LanguageModel as LanguageModel
from nlp_retrieval.lm.programs import CompiledProgram as CompiledProgram
from nlp_retrieval.lm.programs import fingerprint_of_program as fingerprint_of_program
from nlp_retrieval.lm.reading import LONGEST_ANSWER as LONGEST_ANSWER
from nlp_retrieval.lm.reading import read_object as read_object
from nlp_retrieval.lm.reading import read_passage as read_passage
