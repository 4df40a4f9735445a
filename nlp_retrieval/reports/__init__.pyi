"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.reports.notes import counted as counted
from nlp_retrieval.reports.notes import listed as listed
from nlp_retrieval.reports.page.templating import asset as asset
from nlp_retrieval.reports.page.templating import rendered as rendered
from nlp_retrieval.reports.tracking.mlflow import MlflowLogger as MlflowLogger
from nlp_retrieval.reports.tracking.run_logger import RunLogger as RunLogger
from nlp_retrieval.reports.tracking.tensorboard import TensorboardLogger as TensorboardLogger
from nlp_retrieval.reports.wandb import WandbLogger as WandbLogger
