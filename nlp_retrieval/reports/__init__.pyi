"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.reports.findings import headline as headline
from nlp_retrieval.reports.page.templating import asset as asset
from nlp_retrieval.reports.page.templating import rendered as rendered
from nlp_retrieval.reports.trackers import log_to_mlflow as log_to_mlflow
from nlp_retrieval.reports.trackers import log_to_wandb as log_to_wandb
from nlp_retrieval.reports.write import write_run_files as write_run_files
