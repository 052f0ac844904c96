"""What importing gzkcore costs; scikit-learn, which it stands on, beside it."""


class Import:
    """Each import in a fresh process, once; starting the interpreter isn't counted."""

    number = 1

    def timeraw_gzkcore(self):
        return "import gzkcore"

    def timeraw_features(self):
        return "from gzkcore import GegenbauerFeatures"

    def timeraw_sklearn(self):
        return "import sklearn"
