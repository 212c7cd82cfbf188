from pathlib import Path

from setuptools import find_namespace_packages, setup

VERSION = "0.1.0"

# One recent version: unconstrained, pip walks back through hundreds of boto3 releases.
BOTO = ["boto3>=1.40,<2", "botocore>=1.40,<2"]

setup(
    name="metaflow-kubernetes-ext",
    version=VERSION,
    description="Multi-node Metaflow steps on Kubernetes: one workload, all its ranks, told to its user.",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    package_dir={"": "metaflow_ext"},
    packages=find_namespace_packages(where="metaflow_ext"),
    package_data={"metaflow_devcluster": ["**/*.json", "**/*.gz"]},
    install_requires=[
        "metaflow>=2.19",
        "kubernetes>=31,!=37.0.2",  # 37.0.2 needs python-dateutil 3, botocore needs < 3
        "aiohttp>=3.9",  # the development cluster; kubernetes 36 and later need it anyway
        "jsonpatch>=1.33",
        "PyYAML>=6",
    ],
    extras_require={
        "s3": BOTO,
        "test": [
            *BOTO,
            "moto[s3,server]>=5",
            "setuptools>=69",  # the tests build the package without fetching anything
            "wheel",
            "packaging",
            "pytest>=8",
            "pytest-xdist>=3.6",
            "hypothesis>=6.100",
            "import-linter>=2.1",
            "mypy>=1.14",
            "ruff>=0.9",
            "types-PyYAML",
            "numpy>=1.26",
            "scikit-learn>=1.4",
            "matplotlib>=3.8",
            "nbclient>=0.10",
            "ipykernel>=6.29",
        ],
    },
    entry_points={"console_scripts": ["metaflow-devcluster = metaflow_devcluster.cli:main"]},
    classifiers=[
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
    ],
)
