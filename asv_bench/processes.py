"""Gaussian processes of other libraries for `tables.py prediction`, as their tutorials set them up.

Each needs its package: gpytorch with torch, gpboost, or xGPR. `new_encoder` standardises columns
and encodes categories as zeros and ones.
"""

import warnings

import numpy as np

STEPS, RATE = 100, 0.1  # steps and rate of Adam for the exact process
EPOCHS, SLOW_RATE, BATCH, INDUCING = 100, 0.01, 512, 512  # settings of the sparse process
NEIGHBOURS = 20  # GPBoost's default
TUNING_FEATURES, FEATURES = 1024, 8192  # widths of xGPR for choosing its parameters and for the fit


class Process:
    """Base of the processes: it encodes rows and centres y."""

    def __init__(self, new_encoder, seed):
        self.encoder, self.seed = new_encoder(), seed

    def fit(self, X, y):
        """Fit to a frame."""
        self.mean = float(np.mean(y))
        self.model = self._fitted(self.encoder.fit_transform(X), np.asarray(y) - self.mean)
        return self

    def predict(self, X):
        """Return means."""
        return self._predicted(self.encoder.transform(X)) + self.mean


class ExactProcess(Process):
    """GPyTorch's exact process, Matern-5/2 with one length per column, by Adam."""

    def _fitted(self, X, y):
        import gpytorch
        import torch

        torch.manual_seed(self.seed)
        rows, targets = torch.tensor(X).float(), torch.tensor(y).float()
        likelihood = gpytorch.likelihoods.GaussianLikelihood()

        class Exact(gpytorch.models.ExactGP):
            def __init__(self):
                super().__init__(rows, targets, likelihood)
                self.mean, self.kernel = gpytorch.means.ConstantMean(), _kernel(X.shape[1])

            def forward(self, X):
                return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

        model = Exact().train()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = -objective(model(rows), targets)
            loss.backward()
            optimizer.step()
        return model

    def _predicted(self, X):
        import gpytorch
        import torch

        with (
            warnings.catch_warnings(),
            torch.no_grad(),
            gpytorch.settings.skip_posterior_variances(),
        ):
            warnings.simplefilter("ignore")
            return self.model.eval()(torch.tensor(X).float()).mean.numpy()


class SparseProcess(Process):
    """GPyTorch's stochastic variational process (SVGP), Matern-5/2 with one length per column."""

    def _fitted(self, X, y):
        import gpytorch
        import torch

        torch.manual_seed(self.seed)
        rows, targets = torch.tensor(X).float(), torch.tensor(y).float()
        variational = gpytorch.variational

        class Sparse(gpytorch.models.ApproximateGP):
            def __init__(self, inducing):
                distribution = variational.CholeskyVariationalDistribution(len(inducing))
                super().__init__(variational.VariationalStrategy(
                    self, inducing, distribution, learn_inducing_locations=True
                ))  # fmt: skip
                self.mean, self.kernel = gpytorch.means.ConstantMean(), _kernel(X.shape[1])

            def forward(self, X):
                return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

        model = Sparse(rows[torch.randperm(len(rows))[:INDUCING]].clone()).train()
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        objective = gpytorch.mlls.VariationalELBO(likelihood, model, len(rows))
        parameters = [*model.parameters(), *likelihood.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=SLOW_RATE)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(rows)).split(BATCH):
                optimizer.zero_grad()
                loss = -objective(model(rows[batch]), targets[batch])
                loss.backward()
                optimizer.step()
        return model

    def _predicted(self, X):
        import torch

        with torch.no_grad():
            return self.model.eval()(torch.tensor(X).float()).mean.numpy()


class VecchiaProcess(Process):
    """GPBoost's process by Vecchia's approximation, Matern-3/2 with one length per column."""

    def _fitted(self, X, y):
        import gpboost

        varies = np.ptp(X, axis=0) > 0
        self.varies = varies
        model = gpboost.GPModel(
            gp_coords=X[:, varies], cov_function="matern_ard", cov_fct_shape=1.5,
            gp_approx="vecchia", num_neighbors=NEIGHBOURS, likelihood="gaussian", seed=self.seed,
        )  # fmt: skip
        return model.fit(y=y)

    def _predicted(self, X):
        prediction = self.model.predict(gp_coords_pred=X[:, self.varies], predict_var=False)
        return np.asarray(prediction["mu"])


class FeatureProcess(Process):
    """xGPR's process by fast random features, Matern-5/2 with one length for all columns."""

    def _fitted(self, X, y):
        from xGPR import build_regression_dataset, xGPRegression

        model = xGPRegression(
            num_rffs=TUNING_FEATURES, kernel_choice="Matern", verbose=False, random_seed=self.seed
        )
        rows = build_regression_dataset(X, y)
        model.tune_hyperparams_crude(rows, random_seed=self.seed)
        model.num_rffs = FEATURES
        model.fit(rows, suppress_var=True)
        return model

    def _predicted(self, X):
        return self.model.predict(X)


def _kernel(n_columns):
    import gpytorch

    matern = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=n_columns)
    return gpytorch.kernels.ScaleKernel(matern)
