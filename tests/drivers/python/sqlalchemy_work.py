"""SQLAlchemy's part of work.py: its pool with pre-ping, its ORM, its isolation levels."""

import pymysql
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, select
from sqlalchemy import event, func, text
from sqlalchemy.orm import Session, declarative_base
from work import PORT, SCHEMA, TLS, WORKERS, say, work

BASE = declarative_base()


class Person(BASE):
    __tablename__ = "person"
    id = Column(Integer, primary_key=True)
    name = Column(String(50), nullable=False)


class Driver:
    Error = pymysql.MySQLError

    def __init__(self):
        url = f"mysql+pymysql://app:app@127.0.0.1:{PORT}/{SCHEMA}?charset=utf8mb4"
        options = dict(pool_size=WORKERS, max_overflow=4, pool_pre_ping=True, connect_args={"ssl": TLS})
        self.engine = create_engine(url, **options)

    def connect(self, charset=None):
        connection = self.engine.raw_connection()
        if charset:
            connection.detach()
            connection.set_charset(charset)
        return connection

    pooled = connect

    def number(self, error):
        return error.args[0] if error.args else None

    def again(self, connection):
        connection.invalidate()
        return self.connect()

    def extra(self):
        BASE.metadata.create_all(self.engine)
        with Session(self.engine) as session:
            session.add_all([Person(name=f"p{n}") for n in range(300)])
            session.commit()
            with session.begin_nested() as savepoint:
                session.add(Person(name="not to stay"))
                session.flush()
                savepoint.rollback()
            session.commit()
            say("orm:", session.scalar(select(func.count()).select_from(Person)))
            person = session.scalars(select(Person).where(Person.name == "p7")).one()
            person.name = "seven"
            session.commit()
            say("changed:", session.get(Person, person.id).name)
        reflected = Table("person", MetaData(), autoload_with=self.engine)
        say("reflected:", [column.name for column in reflected.columns])
        options = {"isolation_level": "SERIALIZABLE"}
        with self.engine.connect().execution_options(**options) as connection:
            say("level:", connection.get_isolation_level())
        with self.engine.connect() as connection:
            say("then:", connection.get_isolation_level())
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT id FROM person WHERE id <= :id"), {"id": 5})
            say("bound:", len(rows.all()))


driver = Driver()


@event.listens_for(driver.engine, "connect")
def preamble(connection, _record):
    """What an application sets for each of its connections."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+01:00'")


work(driver)
