"""The time of importing gzkcore, beside scikit-learn, which it needs."""


class Import:
    """Each import in a fresh process, once; starting the interpreter isn't counted."""

    number = 1

    def timeraw_gzkcore(self):
        return "import gzkcore"

    def timeraw_features(self):
        return "from gzkcore import GegenbauerFeatures"

    def timeraw_sklearn(self):
        return "import sklearn"
