"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.agents.files import read_trajectories as read_trajectories
from nlp_retrieval.agents.files import write_trajectories as write_trajectories
from nlp_retrieval.agents.measures import TrajectoryEvaluation as TrajectoryEvaluation
from nlp_retrieval.agents.measures import evaluate_trajectories as evaluate_trajectories
from nlp_retrieval.agents.page import trajectories_page as trajectories_page
from nlp_retrieval.agents.recorder import Recorder as Recorder
from nlp_retrieval.agents.recorder import Session as Session
from nlp_retrieval.agents.recorder import recording as recording
from nlp_retrieval.agents.replaying import Replay as Replay
from nlp_retrieval.agents.replaying import replay as replay
from nlp_retrieval.agents.run import TrajectoryRun as TrajectoryRun
from nlp_retrieval.agents.searchers import AgentAnswer as AgentAnswer
from nlp_retrieval.agents.searchers import AgentSearcher as AgentSearcher
from nlp_retrieval.agents.searchers import AgentTools as AgentTools
from nlp_retrieval.agents.searchers import running_tools as running_tools
from nlp_retrieval.agents.trajectory import AgentStep as AgentStep
from nlp_retrieval.agents.trajectory import Trajectory as Trajectory
