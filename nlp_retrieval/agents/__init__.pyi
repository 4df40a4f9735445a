"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.agents.trajectory import AgentStep as AgentStep
from nlp_retrieval.agents.trajectory import Trajectory as Trajectory
